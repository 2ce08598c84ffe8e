package rollout

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Gate holds one entry for each Configuration that limits its rollouts. It is
// safe for concurrent use.
type Gate struct {
	wake func(types.NamespacedName)

	mu     sync.Mutex
	groups map[types.UID]*group
}

// NewGate returns a Gate that calls wake for each Instance that may try to pass
// again. wake must not block.
func NewGate(wake func(types.NamespacedName)) *Gate {
	return &Gate{wake: wake, groups: map[types.UID]*group{}}
}

// Len returns how many Configurations have an entry.
func (g *Gate) Len() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.groups)
}

// SetInstances records the Instances of a Configuration, as listed now, and the limit
// of how many may be unavailable. Before, only Instances that are unavailable anyway
// pass.
func (g *Gate) SetInstances(configuration types.UID, namespace string, instances []string, limit intstr.IntOrString) {
	g.mu.Lock()
	defer g.mu.Unlock()
	group := g.group(configuration)
	group.namespace, group.limit, group.complete = namespace, limit, true
	listed := make(map[string]bool, len(instances))
	for _, name := range instances {
		listed[name] = true
		group.member(name)
	}
	for name, member := range group.members {
		if !listed[name] && member.state == unknown { // from an earlier list; others may be newer than this one
			delete(group.members, name)
		}
	}
	g.open(group)
}

// TryAcquire reports whether an Instance may be changed now; ready is whether it is ready now. If
// it may be changed, it counts as unavailable until [Gate.Report] records otherwise; if not, it
// is woken when it is its turn. An Instance that is unavailable anyway always passes.
func (g *Gate) TryAcquire(configuration types.UID, instance string, ready bool, limit intstr.IntOrString) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	group := g.group(configuration)
	group.limit = limit // the list of members may be older than an edit
	member := group.member(instance)
	group.returnTurn(member)
	if member.state == unknown || !ready { // a known one that is ready may just have passed
		group.set(member, stateOf(ready))
		g.open(group)
	}
	if member.isAvailable() && group.free() < 1 {
		group.set(member, waiting)
		return false
	}
	group.set(member, unavailable)
	g.open(group)
	return true
}

// Report records whether an Instance is ready after a pass that held nothing back.
func (g *Gate) Report(configuration types.UID, instance string, ready bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if group, found := g.groups[configuration]; found {
		group.set(group.member(instance), stateOf(ready))
		g.open(group)
	}
}

// Done records the end of a pass. If an Instance was woken and has not tried to
// pass, another is woken in its place.
func (g *Gate) Done(configuration types.UID, instance string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if group, found := g.groups[configuration]; found {
		if member, found := group.members[instance]; found {
			group.returnTurn(member)
			g.open(group)
		}
	}
}

// RemoveInstance records that an Instance no longer exists, or is being deleted.
func (g *Gate) RemoveInstance(configuration types.UID, instance string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	group, found := g.groups[configuration]
	if !found {
		return
	}
	group.set(group.member(instance), unknown)
	delete(group.members, instance)
	g.open(group)
	if len(group.members) == 0 && !group.complete {
		delete(g.groups, configuration) // its Configuration was gone before its Instances
	}
}

// Forget drops a Configuration that no longer exists, or no longer limits its
// rollouts. Waiting Instances are woken.
func (g *Gate) Forget(configuration types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if group, found := g.groups[configuration]; found {
		delete(g.groups, configuration)
		for _, member := range group.queue {
			g.wake(types.NamespacedName{Namespace: group.namespace, Name: member.name})
		}
	}
}

// group returns the entry of a Configuration. The caller holds the lock.
func (g *Gate) group(configuration types.UID) *group {
	found := g.groups[configuration]
	if found == nil {
		found = &group{members: map[string]*member{}}
		g.groups[configuration] = found
	}
	return found
}

// open wakes as many waiting Instances as may pass. The caller holds the lock.
func (g *Gate) open(group *group) {
	for len(group.queue) > 0 && group.free() > 0 {
		next := group.queue[0]
		group.set(next, woken)
		g.wake(types.NamespacedName{Namespace: group.namespace, Name: next.name})
	}
}

// group is what is known about a Configuration's Instances.
type group struct {
	namespace string
	limit     intstr.IntOrString
	complete  bool // all Instances are members
	members   map[string]*member
	available int       // how many members are available
	queue     []*member // that wait, in the order in which they began to
}

// member is what is known about an Instance.
type member struct {
	name  string
	state state
}

// state is where an Instance is in a rollout.
type state int

const (
	unknown     state = iota // not reported yet, and perhaps unavailable
	unavailable              // not ready, or being changed
	available                // ready
	waiting                  // ready, and in the queue
	woken                    // ready, and about to be changed: it is its turn, and it counts as unavailable
)

func stateOf(ready bool) state {
	if ready {
		return available
	}
	return unavailable
}

func (m *member) isAvailable() bool { return m.state == available || m.state == waiting }

// member returns the member of a name.
func (g *group) member(name string) *member {
	found := g.members[name]
	if found == nil {
		found = &member{name: name}
		g.members[name] = found
	}
	return found
}

// set changes the state of a member, and its place in the queue.
func (g *group) set(member *member, to state) {
	if member.state == to {
		return
	}
	if member.isAvailable() {
		g.available--
	}
	if member.state == waiting {
		place := slices.Index(g.queue, member)
		g.queue = slices.Delete(g.queue, place, place+1)
	}
	member.state = to
	if member.isAvailable() {
		g.available++
	}
	if to == waiting {
		g.queue = append(g.queue, member)
	}
}

// returnTurn ends the turn of a member, if it has one.
func (g *group) returnTurn(member *member) {
	if member.state == woken {
		g.set(member, available)
	}
}

// free returns how many more members may become unavailable. A percentage is rounded down,
// but never to 0.
func (g *group) free() int {
	if !g.complete {
		return 0
	}
	limit, err := intstr.GetScaledValueFromIntOrPercent(&g.limit, len(g.members), false)
	if err != nil {
		limit = len(g.members) // the schema refuses such values
	}
	return max(limit, 1) + g.available - len(g.members)
}
