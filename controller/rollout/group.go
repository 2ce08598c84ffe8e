package rollout

import "k8s.io/apimachinery/pkg/util/intstr"

// groupRollout is what is known about a Configuration's Instances. It keeps counts, so
// that an event of one Instance costs no look at the others.
type groupRollout struct {
	namespace string
	setting   intstr.IntOrString
	complete  bool // all Instances are members
	members   map[string]*memberState
	// unavailable and woken count members.
	unavailable, woken int
	// queue holds the waiting members in the order in which they began to wait, and
	// some that no longer wait.
	queue []*memberState
	lists int // number of lists of Instances so far
}

// memberState is what is known about an Instance.
type memberState struct {
	name string
	// available reports whether the Instance was ready when last reported and has
	// not passed since. It is false before the first report.
	available, reported bool
	waiting             bool
	queued              bool // in the queue of the group
	woken               bool // woken and not passed since: it is its turn
	list                int  // the last list that had it
}

// member returns the member of a name.
func (g *groupRollout) member(name string) *memberState {
	found := g.members[name]
	if found == nil {
		found = &memberState{name: name}
		g.members[name] = found
		g.unavailable++
	}
	return found
}

// update adds the Instances of a list. Members that are not in it and that have
// never been reported came from an earlier list and no longer exist; those that were
// reported may be newer than the list.
func (g *groupRollout) update(instances []string) {
	g.lists++
	for _, name := range instances {
		g.member(name).list = g.lists
	}
	for name, member := range g.members {
		if member.list != g.lists && !member.reported {
			g.remove(name)
		}
	}
}

// report records whether a member is available. A report ends its turn.
func (g *groupRollout) report(member *memberState, available bool) {
	g.returnTurn(member)
	if member.available != available {
		if available {
			g.unavailable--
		} else {
			g.unavailable++
		}
	}
	member.available, member.reported = available, true
}

// remove removes a member.
func (g *groupRollout) remove(name string) {
	member, found := g.members[name]
	if !found {
		return
	}
	g.returnTurn(member)
	if !member.available {
		g.unavailable--
	}
	member.waiting = false // it may still be in the queue
	delete(g.members, name)
}

// free returns how many more members may become unavailable. Those whose turn it is
// count as unavailable.
func (g *groupRollout) free() int {
	if !g.complete {
		return 0
	}
	limit, err := MaxUnavailable(g.setting, len(g.members))
	if err != nil {
		limit = len(g.members) // the schema refuses such values
	}
	return limit - g.unavailable - g.woken
}

// wait puts a member at the end of the queue, unless it is in it.
func (g *groupRollout) wait(member *memberState) {
	member.waiting = true
	if !member.queued {
		member.queued = true
		g.queue = append(g.queue, member)
	}
}

// next takes the first waiting member from the queue, whose turn it is then. It
// returns nil if none waits.
func (g *groupRollout) next() *memberState {
	for len(g.queue) > 0 {
		first := g.queue[0]
		g.queue = g.queue[1:]
		first.queued = false
		if first.waiting {
			first.waiting, first.woken = false, true
			g.woken++
			return first
		}
	}
	return nil
}

// returnTurn ends the turn of a member, if it has one.
func (g *groupRollout) returnTurn(member *memberState) {
	if member.woken {
		member.woken = false
		g.woken--
	}
}
