package slots_test

import (
	"slices"
	"time"

	"akri.sh/akri/agent/serve/slots"
	v0 "akri.sh/akri/api/v0"
)

// node is a kubelet with its Pods, and the agent with its machine.
type node struct {
	w     *world
	name  string
	sees  map[string]bool // devices
	up    map[string]bool // devices that are online
	m     *slots.Machine  // nil while the agent is down
	epoch int             // of the agent
	// stepped means that the machine may have changed since it was last checked.
	stepped bool
	// booted is when the agent last started.
	booted time.Duration

	watched           map[string]bool // Instances that the agent knows
	delivered         time.Duration   // when the last event of the watch arrives
	known             map[string]snapshot
	cutOff, forbidden time.Duration // no API server, or no right to write, until then

	lists     map[slots.Resource][]slots.Health // as the kubelet has them
	listedBy  map[slots.Resource]int            // the agent whose list it is
	named     map[slots.Resource]map[int]time.Duration
	pods      []*pod
	admitting *pod
	// unnoticed are the Pods that have gone, until an observation has shown that their IDs are free.
	unnoticed []*pod
	calls     map[slots.Call]*step
	initial   time.Duration // the kubelet lists no Pods until then
	backoff   time.Duration
	observed  int // observations planned
	// given are the slots that the agent has given since its start, listed since when
	// observations have listed an ID, and observedAt is when the last one was.
	given      map[slots.Ref]bool
	listed     map[slots.Use]time.Duration
	observedAt time.Duration
	// namedAt is when a call last named a slot, or a patch of it was settled. Observations
	// that began earlier say nothing about it.
	namedAt   map[slots.Use]time.Duration
	observing bool
	// restless is when something last delayed the release of all slots: open is the same
	// for those of a resource, and delays for a single one.
	restless time.Duration
	open     map[string]time.Duration
	delays   map[slots.Ref]time.Duration
	used     map[slots.Ref]time.Duration // until when a container had a slot
	// sent are the owners that the watch has reported, or will.
	sent   map[slots.Ref]v0.Owner
	failed map[string]int          // patches and probes of an Instance, since one was written
	held   map[string]map[int]bool // slots that containers may have, of Instances that are claimed
	// unseen are the Instances with slots of this node that did not have its label when the
	// agent started: a user had removed it.
	unseen []string
	// capacity is that of each Instance as the agent knows it, and configured that of its
	// Configuration.
	capacity, configured map[string]int
}

// Pod has one or two containers, which get the same IDs, as an init container and an
// app container do.
type pod struct {
	requests   []request
	containers int
	uses       []use
	stalled    time.Duration // until when the kubelet does not call the agent
	live       bool          // a container runs
	running    bool          // all containers were admitted
	answered   time.Duration // for the first time
	booked     bool          // the kubelet lists its IDs
	ended      bool          // the kubelet knows that it has ended
	gone       time.Duration // when neither the kubelet nor a container knew it any more
}

// request is a number of IDs of a resource.
type request struct {
	resource slots.Resource
	ids      []int
	count    int
	answer   []slots.Ref
	answered time.Duration
}

// use is a slot that a container has.
type use struct {
	ref   slots.Ref
	owner v0.Owner
}

// step is one Allocate of an admission.
type step struct {
	pod       *pod
	container int
	request   int
	sent      time.Duration
	unlisted  bool // an ID had left the list when it was called
	owned     bool // the node owned the slots when it was called
	moves     bool // the kubelet stalled, and the slots of the former container cannot be given
}

func newNode(w *world, name string) *node {
	return &node{
		w: w, name: name, capacity: map[string]int{}, configured: map[string]int{},
		sees: map[string]bool{}, up: map[string]bool{"cam-a": true, "cam-b": true, "cam-c": true},
		lists: map[slots.Resource][]slots.Health{}, listedBy: map[slots.Resource]int{},
		named: map[slots.Resource]map[int]time.Duration{}, calls: map[slots.Call]*step{},
		open: map[string]time.Duration{}, delays: map[slots.Ref]time.Duration{},
		used: map[slots.Ref]time.Duration{}, held: map[string]map[int]bool{},
	}
}

// boot starts the agent. Its containers keep running. The first record of an Instance
// may be old: it comes from a cache.
func (n *node) boot() {
	if n.w.now < n.cutOff { // an agent that cannot read Instances offers none
		n.w.after(n.cutOff-n.w.now, n.boot)
		return
	}
	n.epoch++
	n.m = slots.New(n.name)
	n.watched, n.known, n.delivered = map[string]bool{}, map[string]snapshot{}, n.w.now
	n.given, n.listed, n.unseen, n.unnoticed = map[slots.Ref]bool{}, map[slots.Use]time.Duration{}, nil, nil
	n.namedAt, n.sent, n.failed = map[slots.Use]time.Duration{}, map[slots.Ref]v0.Owner{}, map[string]int{}
	n.restless, n.booted = max(n.restless, n.w.now), n.w.now
	n.w.note("%s: the agent starts", n.name)
	for _, name := range n.w.names {
		o := n.w.objects[name]
		if !o.labels[n.name] && !n.free(o) {
			n.unseen = append(n.unseen, name)
		}
		if o.exists && o.labels[n.name] {
			n.watched[name] = true
			record := o.history[n.w.rng.IntN(len(o.history))]
			if !o.shared { // given without asking, so the agent must begin with a consistent list
				record = o.record()
			}
			if n.w.chance(50) {
				n.publish(name)
			}
			n.learn(name, &record)
			n.step(slots.InstanceRecorded{Instance: name, Record: record.Record})
			n.notify(o)
		}
		n.publish(name)
	}
	n.observeAfter(200 * time.Millisecond)
}

// publish passes a device to the machine.
func (n *node) publish(name string) {
	o := n.w.objects[name]
	if n.m != nil && n.sees[name] {
		n.capacity[name] = n.capacityOf(name)
		n.step(slots.DevicePublished{
			Instance: name, Configuration: configuration, Shared: o.shared, Capacity: n.capacity[name], Online: n.up[name],
		})
	}
}

// capacityOf returns the capacity that an agent knows. It does not believe an Instance
// whose capacity is higher than that of the Configuration.
func (n *node) capacityOf(name string) int {
	if n.known[name].Version == 0 {
		return n.configured[name]
	}
	return min(n.configured[name], n.known[name].capacity)
}

// crash ends the agent. The kubelet's calls fail.
func (n *node) crash() {
	n.w.note("%s: the agent ends", n.name)
	n.w.stats.Crashes++
	for _, p := range n.pods { // what was given before it was written, or is released late, is forgotten
		for _, u := range p.uses {
			if o := n.w.objects[u.ref.Instance]; !o.shared && (o.usage[u.ref.Slot] != u.owner || n.w.mayFree(u.ref)) {
				n.w.excuse(u.ref)
			}
		}
	}
	n.m = nil
	n.epoch++
	if p := n.admitting; p != nil {
		if len(n.calls) == 0 && !p.live && n.w.oneIn(2) { // the next agent gets the call, for IDs of the list of this one
			p.stalled = n.w.now + n.w.upTo(6*time.Second)
		} else {
			n.reject(p)
		}
	}
	clear(n.calls)
	clear(n.named)                 // the next agent cannot know them, but must refuse those that it does not list
	for _, list := range n.lists { // the kubelet's connection ends
		for i := range list {
			list[i].Healthy = false
		}
	}
	n.w.after(n.w.upTo(3*time.Second), n.boot)
}

// step passes an event to the machine and carries out its commands. The agent may end
// between any two of them.
func (n *node) step(e slots.Event) {
	if n.m == nil {
		return
	}
	if _, tick := e.(slots.Ticked); !tick {
		n.step(slots.Ticked{Now: n.w.now})
		if n.m == nil {
			return
		}
	}
	if n.w.verbose {
		n.w.note("%s < %T%+v", n.name, e, e)
	}
	commands := n.m.Step(e)
	n.stepped = true
	n.checkCommands(commands)
	epoch := n.epoch
	for _, c := range commands {
		n.w.note("%s > %s", n.name, c)
		if n.w.faults[crashes] && !n.w.calm && n.w.rng.IntN(300) == 0 {
			n.crash()
		}
		if n.epoch != epoch {
			return
		}
		n.do(c)
	}
	if at, found := n.m.Deadline(); found {
		n.w.after(max(at-n.w.now, time.Millisecond), func() {
			if epoch == n.epoch && n.m != nil && n.w.now >= at {
				if again, found := n.m.Deadline(); found && again <= n.w.now {
					n.step(slots.Ticked{Now: n.w.now})
				}
			}
		})
	}
}

func (n *node) do(command slots.Command) {
	switch c := command.(type) {
	case slots.Answer:
		n.answered(c)
	case slots.Claim:
		n.send(c.Instance, c.Owners, false)
	case slots.Release:
		n.send(c.Instance, c.Owners, true)
	case slots.Probe:
		n.probe(c.Instance)
	case slots.Advertise:
		n.receive(c.Resource, c.List)
	case slots.Withdraw:
		n.receive(c.Resource, nil)
	case slots.Report:
		switch restores := c.Conflict == ""; {
		case restores && !n.w.edited[c.Slot]:
			n.w.fail("%s restores the owner of %s, which nobody has emptied", n.name, c.Slot)
		case !restores && !n.mayReport(c.Slot):
			n.w.fail("conflict on %s: %s", n.name, c)
		}
	}
}

func (n *node) probe(instance string) {
	o, epoch := n.w.objects[instance], n.epoch
	n.w.after(n.w.upTo(20*time.Millisecond), func() {
		if epoch != n.epoch {
			return
		}
		outcome, record := slots.Written, o.record()
		if n.w.now < n.cutOff || n.w.now < n.forbidden || !o.exists || n.known[instance].Version < o.created {
			n.failed[instance]++
			n.step(slots.ProbeSettled{Instance: instance, Result: slots.Result{Outcome: slots.Refused}})
			return
		}
		n.learn(instance, &record)
		n.step(slots.ProbeSettled{Instance: instance, Result: slots.Result{Outcome: outcome, Record: &record.Record}})
	})
}

// quietTime is how long an ID stays in the list after a call: the kubelet crashes if the
// answer names one that has left it.
const quietTime = 30 * time.Second

// receive replaces the kubelet's list (I6).
func (n *node) receive(r slots.Resource, list []slots.Health) {
	for _, h := range n.lists[r] {
		dropped := !slices.ContainsFunc(list, func(o slots.Health) bool { return o.ID == h.ID })
		if at, found := n.named[r][h.ID]; dropped && found && n.w.now-at < quietTime {
			n.w.fail("I6: ID %d left the list of %s on %s %s after a call", h.ID, r.Name, n.name, n.w.now-at)
		}
	}
	n.lists[r], n.listedBy[r] = slices.Clone(list), n.epoch
}
