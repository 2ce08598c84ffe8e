package slots_test

import (
	"maps"
	"slices"
	"time"

	"akri.sh/akri/agent/serve/slots"
	v0 "akri.sh/akri/api/v0"
)

// fault is a kind of fault. A schedule has some of them.
type fault int

const (
	crashes      fault = iota // of the agent
	restarts                  // of the kubelet
	outages                   // of the API server, for one node
	prohibitions              // 403 and 422 that persist
	interrupts                // the watch ends
	departures                // a node leaves a device and joins it again
	offlines                  // a device goes offline
	resizes                   // of the capacity
	deletions                 // of the Instance
	edits                     // of deviceUsage, by a user
	stalls                    // of the kubelet
	forced                    // deletion of Pods
	numberOfFaults
)

// faultHappens injects one of the schedule's faults.
func (w *world) faultHappens() {
	if w.calm {
		return
	}
	w.after(w.upTo(5*time.Second), w.faultHappens)
	f := fault(w.rng.IntN(int(numberOfFaults)))
	if !w.faults[f] {
		return
	}
	n := w.nodes[w.rng.IntN(len(w.nodes))]
	o := w.objects[w.names[w.rng.IntN(len(w.names))]]
	switch f {
	case crashes:
		if n.m != nil {
			n.crash()
		}
	case restarts:
		n.initial = w.now + w.upTo(5*time.Second)
		n.restless = max(n.restless, n.initial)
		w.note("%s: the kubelet restarts", n.name)
	case outages:
		n.cut(w.now + w.upTo(10*time.Second))
	case prohibitions:
		n.forbidden = w.now + w.upTo(20*time.Second)
		n.restless = max(n.restless, n.forbidden)
		w.note("%s may not write until %s", n.name, n.forbidden)
	case interrupts:
		n.cut(w.now + w.upTo(2*time.Second))
	case departures:
		n.depart(o)
	case offlines:
		n.up[o.name] = !n.up[o.name]
		n.publish(o.name)
	case resizes:
		w.resize(o, 1+w.rng.IntN(3))
	case deletions:
		w.remove(o)
	case edits:
		w.edit(o)
	}
}

// cut separates a node from the API server.
func (n *node) cut(until time.Duration) {
	n.w.note("%s does not reach the API server until %s", n.name, until)
	n.cutOff = max(n.cutOff, until)
	n.restless = max(n.restless, n.cutOff)
	n.w.after(n.cutOff-n.w.now, func() {
		if n.w.now >= n.cutOff {
			n.listAgain()
		}
	})
}

// depart lets a node leave a device. It keeps its label until its slots are free, unless
// a user removes it. Then the node joins again.
func (n *node) depart(o *object) {
	if !n.sees[o.name] {
		return
	}
	n.w.note("%s no longer sees %s", n.name, o.name)
	n.sees[o.name] = false
	n.step(slots.DeviceWithdrawn{Instance: o.name})
	if n.w.chance(30) {
		n.unlabel(o)
	}
	n.leaveWhenFree(o)
	n.w.after(n.w.upTo(15*time.Second), func() {
		n.w.note("%s sees %s again", n.name, o.name)
		n.sees[o.name] = true
		n.label(o)
		n.publish(o.name)
	})
}

func (n *node) leaveWhenFree(o *object) {
	if n.sees[o.name] || !o.labels[n.name] {
		return
	}
	if !n.free(o) {
		n.w.after(500*time.Millisecond, func() { n.leaveWhenFree(o) })
		return
	}
	n.unlabel(o)
}

// free reports whether a node owns no slot of an Instance.
func (n *node) free(o *object) bool {
	for _, owner := range o.usage {
		if owner.Node == n.name {
			return false
		}
	}
	return true
}

func (n *node) label(o *object) {
	if o.exists && !o.labels[n.name] {
		o.labels[n.name] = true
		o.changed()
	}
}

func (n *node) unlabel(o *object) {
	if o.labels[n.name] {
		n.w.note("%s leaves %s", n.name, o.name)
		delete(o.labels, n.name)
		o.changed()
	}
}

// resize edits the capacity. The nodes learn it at different times.
func (w *world) resize(o *object, capacity int) {
	o.configured = capacity
	w.note("%s will have capacity %d", o.name, o.configured)
	for _, n := range w.nodes {
		w.after(w.upTo(time.Second), func() {
			n.configured[o.name] = o.configured
			n.publish(o.name)
		})
	}
	w.after(w.upTo(time.Second), func() { // by one of the agents
		if o.exists && o.capacity != o.configured {
			w.note("%s has capacity %d", o.name, o.configured)
			o.capacity = o.configured
			o.changed()
			o.resized = o.version
		}
	})
}

// crowd lowers the capacity of a device right after the kubelets have chosen IDs. The
// device has one owner, whose slot is beyond the new capacity, and one more is free. The
// kubelets' calls follow when all nodes know the new capacity. Calls that are chosen later
// would not compete for different slots: the lists offer the same slots to all nodes.
func (w *world) crowd() {
	if w.calm {
		return
	}
	w.after(w.upTo(time.Second), w.crowd)
	o := w.objects[w.names[w.rng.IntN(len(w.names))]]
	switch owners := o.owners(); {
	case w.now < w.busyUntil:
	case len(owners) == 1 && owners[0] >= 2 && o.configured > 2:
		w.busyUntil = w.now + 1100*time.Millisecond
		for _, n := range w.nodes {
			n.admit(&pod{containers: 1, requests: []request{{resource: slots.Resource{Name: o.name}, count: 1}}})
		}
		w.resize(o, 2)
	case o.configured < maxSlot && w.oneIn(3):
		w.resize(o, maxSlot)
	}
}

// remove deletes an Instance. It is created again, without owners, as long as a node
// sees the device.
func (w *world) remove(o *object) {
	if !o.exists {
		return
	}
	w.note("%s is deleted", o.name)
	for number := range maxSlot {
		ref := slots.Ref{Instance: o.name, Slot: number}
		w.edited[ref] = true
		for _, n := range w.nodes {
			if n.uses(ref) {
				w.restoring[ref] = true
				w.checkRestorable(n, ref)
			}
		}
	}
	o.exists = false
	clear(o.usage)
	clear(o.since)
	clear(o.labels)
	o.changed()
	w.after(w.upTo(4*time.Second), func() {
		w.note("%s is created again", o.name)
		o.exists, o.history, o.created = true, nil, w.version+1
		o.capacity, o.resized = o.configured, o.created
		for _, n := range w.nodes {
			if n.sees[o.name] {
				o.labels[n.name] = true
			}
			n.restless = max(n.restless, w.now)
		}
		o.changed()
	})
}

// checkRestorable accepts that a slot in use is used twice if its Instance was deleted and,
// until its owner is written again, the agent of its container's node cannot write that, or
// another one that may claim the slot may not know that there was an owner.
func (w *world) checkRestorable(user *node, ref slots.Ref) {
	o := w.objects[ref.Instance]
	for _, n := range w.nodes {
		started := w.now-n.booted < proofTime // its record may be old, and its slots assumed
		absent := n.m == nil || started || w.now < n.cutOff || o.exists && !o.labels[n.name]
		if absent && (n == user || o.shared) || n == user && w.now < n.forbidden {
			w.excuse(ref)
		}
	}
}

// maxSlot is above all slots of the model.
const maxSlot = 4

// excuse accepts that a slot in use is used twice: a user removed its owner.
func (w *world) excuse(ref slots.Ref) {
	w.edited[ref] = true
	if w.inUse(ref) {
		w.excused[ref] = true
	}
}

// atRest reports whether a slot is free, and no container, agent, observation or patch still
// knows a former owner. An agent that starts may read one of the last records.
func (w *world) atRest(ref slots.Ref) bool {
	o := w.objects[ref.Instance]
	owned := func(r snapshot) bool { return !r.Usage[ref.Slot].Free() }
	if !o.exists || owned(o.record()) || slices.ContainsFunc(o.history, owned) || w.inUse(ref) ||
		slices.ContainsFunc(w.late, func(p *patch) bool { return p.o == o }) {
		return false
	}
	return !slices.ContainsFunc(w.nodes, func(n *node) bool {
		unnoticed := slices.ContainsFunc(n.unnoticed, func(p *pod) bool { return p.usesSlot(ref) })
		return n.m == nil || unnoticed || owned(n.known[o.name]) || n.knows(ref)
	})
}

// knows reports whether an agent knows an owner of a slot, or a patch or a call for it is
// in progress.
func (n *node) knows(ref slots.Ref) bool {
	state := n.m.State()
	return state.Waiting > 0 || slices.ContainsFunc(state.Instances, func(i slots.InstanceState) bool {
		return i.Name == ref.Instance && slices.ContainsFunc(i.Slots, func(s slots.SlotState) bool {
			return s.Slot == ref.Slot && !(s.Owner.Free() && s.Held.Free() && s.Patch == "settled")
		})
	})
}

// userOwners are owners that a user writes: of this node and of others, of either kind
// of resource, unknown and invalid ones.
var userOwners = []v0.Owner{
	{}, {Node: "garbage::"}, {Node: "node-z"}, {Node: "node-a"}, {Node: "node-b", VirtualID: "7"}, {Node: "node-a", VirtualID: "akri-0"},
}

// edit changes a slot's owner as a user does who knows no better.
func (w *world) edit(o *object) {
	number := w.rng.IntN(maxSlot)
	owner := userOwners[w.rng.IntN(len(userOwners))]
	if !o.exists || o.usage[number] == owner {
		return
	}
	if n := w.node(owner.Node); n != nil && !o.labels[n.name] {
		return // nobody watches it
	}
	w.note("a user gives %s-%d to %q", o.name, number, owner)
	w.excuse(slots.Ref{Instance: o.name, Slot: number})
	o.own(number, owner)
	o.changed()
	o.edited, o.exceeded = o.version, o.version
	if n := w.node(owner.Node); owner.Node != "" && n == nil {
		w.after(w.upTo(10*time.Second), func() {
			if o.exists && o.usage[number] == owner {
				o.own(number, v0.Owner{})
				o.changed()
			}
		})
	}
}

// end ends a Pod. The container of a Pod that is deleted by force runs on, although the
// kubelet gives its IDs to others at once.
func (n *node) end(p *pod, force bool) {
	lag := n.w.upTo(1500 * time.Millisecond)
	forget := func() {
		p.ended, p.booked = true, false
		if !p.live {
			n.remove(p)
		}
		n.delayUses(p)
		n.observeSoon()
	}
	stop := func() {
		p.live = false
		if p.ended {
			n.remove(p)
		}
		n.delayUses(p)
		n.observeSoon()
	}
	if force {
		n.w.note("%s: a pod with %v is deleted by force", n.name, p.uses)
		n.w.stats.Forced++
		forget()
		n.w.after(n.w.upTo(3*time.Second), stop)
		return
	}
	n.w.note("%s: a pod with %v ends", n.name, p.uses)
	stop()
	n.w.after(lag, forget)
}

// observeSoon is a trigger of the observer.
func (n *node) observeSoon() {
	n.backoff = 0
	n.observeAfter(200 * time.Millisecond)
}

// observeAfter plans an observation, instead of the one that is planned.
func (n *node) observeAfter(d time.Duration) {
	n.observed++
	planned := n.observed
	n.w.after(d, func() {
		switch {
		case planned != n.observed:
		case n.observing: // one at a time
			n.observeAfter(100 * time.Millisecond)
		default:
			n.observe()
		}
	})
}

// observe lists the IDs that containers have, as the observer of the agent does: at its
// beginning or at its end.
func (n *node) observe() {
	n.observeAfter(10 * time.Second)
	if n.m == nil {
		return
	}
	uses := n.m.Uses()
	e := slots.PodsObserved{Since: n.m.Generation(), Began: n.w.now}
	epoch, planned := n.epoch, n.observed
	atBegin := n.w.chance(50)
	if atBegin {
		n.list(&e, uses)
	}
	n.observing = true
	n.w.after(n.w.upTo(1200*time.Millisecond), func() {
		n.observing = false
		if epoch != n.epoch {
			return
		}
		if !atBegin {
			n.list(&e, uses)
		}
		undecided := slices.ContainsFunc(n.m.Uses(), func(u slots.Use) bool { return !slices.Contains(e.Listed, u) })
		n.backoff = min(max(time.Second, 2*n.backoff), 5*time.Second)
		switch {
		case planned != n.observed: // triggered meanwhile
		case undecided:
			n.observeAfter(n.backoff)
		default:
			n.backoff = 0 // the next undecided slot is another one
			n.observeAfter(9*time.Second + n.w.upTo(time.Second))
		}
		n.note(e)
		n.step(e)
	})
}

// note records since when observations have listed each ID, as far as they say something.
func (n *node) note(e slots.PodsObserved) {
	n.observedAt = n.w.now
	maps.DeleteFunc(n.listed, func(u slots.Use, _ time.Duration) bool { return !slices.Contains(e.Listed, u) })
	for _, u := range e.Listed {
		if _, found := n.listed[u]; !found && n.namedAt[u] <= e.Began && (u.Resource != configuration || n.attributes(u.ID)) {
			n.listed[u] = n.w.now
		}
	}
	n.unnoticed = slices.DeleteFunc(n.unnoticed, func(p *pod) bool {
		return p.gone <= e.Began && !slices.ContainsFunc(p.requests, func(r request) bool { return slices.Contains(e.Open, r.resource.Name) })
	})
}

// attributes reports whether the agent of a node knows a record that names a virtual ID.
func (n *node) attributes(id string) bool {
	for _, record := range n.known {
		for _, owner := range record.Usage {
			if owner == (v0.Owner{Node: n.name, VirtualID: id}) {
				return true
			}
		}
	}
	return false
}

// shownTime is how long after its first answer a Pod may be unknown to the observer.
const shownTime = 2 * time.Second

// list observes the IDs that the kubelet lists, and the resources whose list may lack
// some: while the kubelet starts, while a Pod waits for its admission or is being admitted
// for long, and while a container runs whose Pod was deleted by force.
func (n *node) list(e *slots.PodsObserved, uses []slots.Use) {
	if n.w.now < n.initial {
		for _, u := range uses {
			e.Open = append(e.Open, u.Resource)
		}
		e.Unaccounted = e.Open
		return
	}
	if n.admitting != nil && n.w.chance(50) { // the API server shows it already
		for _, r := range n.admitting.requests {
			e.Open = append(e.Open, r.resource.Name)
			n.open[r.resource.Name] = n.w.now
		}
	}
	for _, p := range n.pods {
		for _, r := range p.requests {
			switch {
			case p.booked:
				for _, id := range r.ids {
					e.Listed = append(e.Listed, useOf(r.resource, id))
				}
			case p.live && (p.ended || p.answered+shownTime <= n.w.now):
				e.Open = append(e.Open, r.resource.Name)
				if p.ended {
					e.Unaccounted = append(e.Unaccounted, r.resource.Name)
				}
				n.open[r.resource.Name] = n.w.now
			}
		}
	}
}

func useOf(r slots.Resource, id int) slots.Use {
	if r.Group {
		return slots.Use{Resource: r.Name, ID: v0.SlotName("x", id)[2:]}
	}
	return slots.Use{Resource: r.Name, ID: v0.SlotName(r.Name, id)}
}
