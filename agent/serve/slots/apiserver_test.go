package slots_test

import (
	"maps"
	"slices"
	"time"

	"akri.sh/akri/agent/serve/slots"
	v0 "akri.sh/akri/api/v0"
)

const configuration = "cam"

// object is an Instance in the API server.
type object struct {
	w          *world
	name       string
	exists     bool
	shared     bool
	configured int // the capacity that the Configuration says
	capacity   int
	usage      map[int]v0.Owner
	labels     map[string]bool // by node
	version    uint64
	edited     uint64     // the version when a user last changed it
	created    uint64     // the version when it was created again
	resized    uint64     // the version when its capacity was last changed
	exceeded   uint64     // the version when an owner was last written who need not know the capacity
	history    []snapshot // the last ones
	// since is when the owner of a slot was last changed.
	since map[int]time.Duration
}

// snapshot is a version of an Instance.
type snapshot struct {
	slots.Record
	capacity int
}

// event returns what a machine gets.
func (s *snapshot) event() *slots.Record {
	if s == nil {
		return nil
	}
	return &s.Record
}

func (o *object) record() snapshot {
	return snapshot{slots.Record{
		Version: o.version, Configuration: configuration, Usage: maps.Clone(o.usage), Nodes: slices.Sorted(maps.Keys(o.labels)),
	}, o.capacity}
}

// changed gives the object a new version and sends it to the nodes.
func (o *object) changed() {
	o.w.version++
	o.version = o.w.version
	o.history = append(o.history, o.record())
	if len(o.history) > 3 {
		o.history = o.history[1:]
	}
	for _, n := range o.w.nodes {
		n.notify(o)
	}
}

func (o *object) own(number int, owner v0.Owner) {
	o.usage[number] = owner
	if o.since == nil {
		o.since = map[int]time.Duration{}
	}
	o.since[number] = o.w.now
}

// owners returns the slots that have an owner.
func (o *object) owners() []int {
	var owned []int
	for number, owner := range o.usage {
		if !owner.Free() {
			owned = append(owned, number)
		}
	}
	return owned
}

// patch is a claim or a release on its way.
type patch struct {
	n       *node
	epoch   int
	o       *object
	release bool
	owners  map[int]v0.Owner
	version uint64   // that a release tests
	base    snapshot // that a claim was made for
	aware   bool     // the agent knew the capacity of base
	fresh   bool     // no container has the slots of a claim yet
	created uint64   // when the Instance that the agent knows was created, as its UID
	tries   int
	sent    time.Duration
	settled bool
	kept    bool // a slot had its owner before
}

// send carries out a claim or a release as the agent does: with a deadline, and with a
// read if there is no response. What the API server has received may be applied late,
// even after the agent's end.
func (n *node) send(instance string, owners map[int]v0.Owner, release bool) {
	w := n.w
	p := &patch{n: n, epoch: n.epoch, o: w.objects[instance], release: release, owners: owners, sent: w.now}
	if p.version = p.o.version; n.known[instance].Version >= p.o.created {
		p.created = p.o.created
	}
	if p.base = n.known[instance]; p.base.Version == 0 {
		p.base = p.o.record()
	}
	p.aware = n.capacity[instance] <= p.base.capacity
	p.fresh = true
	for number := range owners {
		p.fresh = p.fresh && !n.held[instance][number]
	}
	latency := time.Millisecond + w.upTo(20*time.Millisecond)
	switch {
	case w.now < n.cutOff && w.chance(30):
		p.landLate()
		w.after(deadline, func() { p.settle(slots.Unknown, nil) })
	case w.now < n.cutOff && w.chance(50):
		w.after(deadline, func() { p.settle(slots.Unknown, nil) })
	case w.now < n.cutOff:
		w.after(latency, func() { p.settle(slots.Refused, nil) })
	case w.now < n.forbidden:
		w.after(latency, func() {
			record := p.o.record()
			if w.chance(50) && p.o.exists && p.created == p.o.created {
				p.settle(slots.Refused, &record)
			} else {
				p.settle(slots.Refused, nil)
			}
		})
	default:
		n.sendOverNetwork(p, latency)
	}
}

// deadline is that of a claim, a release and a call of the kubelet.
const deadline = 2 * time.Second

func (n *node) sendOverNetwork(p *patch, latency time.Duration) {
	w := n.w
	r := w.rng.IntN(100)
	if w.calm || r < 82 {
		w.after(latency, p.arrive)
		return
	}
	for number := range p.owners {
		ref := slots.Ref{Instance: p.o.name, Slot: number}
		n.delay(ref, w.now+deadline)
		if w.restoring[ref] { // several attempts may take longer than the other nodes wait
			w.excuse(ref)
		}
	}
	switch {
	case r < 86: // applied, but the response is lost and the read fails
		w.after(latency, p.land)
		w.after(deadline, func() { p.settle(slots.Unknown, nil) })
	case r < 90: // applied late, after the read
		p.landLate()
		w.after(deadline, func() {
			record := p.o.record()
			switch {
			case !p.o.exists:
				p.settleGone()
			case p.created != p.o.created:
				p.settle(slots.Refused, nil)
			default:
				p.settle(slots.Unknown, &record)
			}
		})
	case r < 93: // the same, and the read fails
		p.landLate()
		w.after(deadline, func() { p.settle(slots.Unknown, nil) })
	case r < 97: // slow
		w.after(w.upTo(deadline-100*time.Millisecond), p.arrive)
	default:
		w.after(latency, func() { p.settle(slots.Refused, nil) })
	}
}

// arrive applies a patch and responds.
func (p *patch) arrive() {
	w := p.n.w
	p.tries++
	switch {
	case !p.o.exists:
		p.settleGone()
		return
	case p.created != p.o.created:
		p.settle(slots.Refused, nil)
		return
	}
	written := p.write()
	record := p.o.record()
	back := time.Millisecond + w.upTo(10*time.Millisecond)
	switch {
	case written:
		w.after(back, func() { p.settle(slots.Written, &record) })
	case p.stale() && p.tries < 5 && p.epoch == p.n.epoch:
		w.after(back, func() { // the agent reads, then retries
			p.version, p.base = p.o.version, p.o.record()
			w.after(back, p.arrive)
		})
	default:
		w.after(back, func() { p.settle(slots.Refused, &record) })
	}
}

// stale reports whether a patch was made for another version than the current one.
func (p *patch) stale() bool {
	if p.release {
		return p.version != p.o.version
	}
	return p.base.Version != p.o.version
}

// allowed reports whether a claim can be made for the version of the Instance that its
// agent knows, and whether the patch applies only to that: after a shrink, another node
// may claim another slot at the same time. It is what agent/serve/claims does.
func (p *patch) allowed() (allowed, pinned bool) {
	more, owners := 0, 0
	for number, owner := range p.owners {
		switch p.base.Usage[number] {
		case v0.Owner{}:
			more++
		case owner:
		default:
			return false, false
		}
	}
	for number, owner := range p.base.Usage {
		if !owner.Free() {
			owners++
			pinned = pinned || number >= p.base.capacity
		}
	}
	return more == 0 || !pinned || owners+more <= p.base.capacity, pinned
}

// land applies a patch whose response nobody receives.
func (p *patch) land() {
	if p.o.exists && p.created == p.o.created && p.write() {
		p.n.w.stats.Landed++
	}
}

// landLate applies a patch after its agent has given it up.
func (p *patch) landLate() {
	w := p.n.w
	w.late = append(w.late, p)
	w.after(deadline+w.upTo(10*time.Second), func() {
		w.late = slices.DeleteFunc(w.late, func(o *patch) bool { return o == p })
		p.land()
	})
}

// mayFree reports whether a release that its agent has given up may still free a slot.
func (w *world) mayFree(ref slots.Ref) bool {
	return slices.ContainsFunc(w.late, func(p *patch) bool {
		_, named := p.owners[ref.Slot]
		return named && p.release && p.o.name == ref.Instance && p.version == p.o.version
	})
}

// write changes the object if the patch's tests pass.
func (p *patch) write() bool {
	o := p.o
	if p.release && p.stale() || !p.release && !o.labels[p.n.name] {
		return false
	}
	if allowed, pinned := p.allowed(); !p.release && (!allowed || pinned && p.stale()) {
		return false
	}
	to := map[int]v0.Owner{}
	for number, owner := range p.owners {
		current := o.usage[number]
		switch {
		case p.release && current == owner:
			to[number] = v0.Owner{}
		case p.release && current.Free():
		case !p.release && current == owner:
			p.kept = true
		case !p.release && current.Free():
			to[number] = owner
		default:
			return false
		}
	}
	if len(to) == 0 {
		return true
	}
	for number, owner := range to {
		if p.release {
			p.n.countRelease(o, number, p.owners[number])
		}
		o.own(number, owner)
	}
	o.w.note("API server: %s %v", o.name, o.usage)
	o.changed()
	if !p.release {
		p.checkCapacity()
	}
	return true
}

// checkCapacity checks that a claim that was made for the current capacity leaves no more
// owners than that (I3). The claims of agents that did not know it, and slots that
// containers have already, may exceed it.
func (p *patch) checkCapacity() {
	o := p.o
	if known := p.aware && p.base.Version >= o.resized; !known || !p.fresh {
		o.exceeded = o.version
		o.w.stats.Checks.judge(capacity, false)
		return
	}
	if o.w.stats.Checks.judge(capacity, p.base.Version >= o.exceeded) && len(o.owners()) > o.capacity {
		o.w.fail("I3: %s has claimed %v of %s with capacity %d: %v", p.n.name, p.owners, o.name, o.capacity, o.usage)
	}
}

func (p *patch) settleGone() {
	p.end(slots.Refused, nil, true)
}

func (p *patch) settle(outcome slots.Outcome, record *snapshot) { p.end(outcome, record, false) }

func (p *patch) end(outcome slots.Outcome, record *snapshot, gone bool) {
	if p.settled || p.epoch != p.n.epoch {
		return
	}
	p.settled = true
	numbers := slices.Sorted(maps.Keys(p.owners))
	for _, number := range numbers {
		p.n.namedAt[slots.Use{Resource: p.o.name, ID: v0.SlotName(p.o.name, number)}] = p.n.w.now
		ref := slots.Ref{Instance: p.o.name, Slot: number}
		p.n.delay(ref, p.n.w.now)
	}
	switch {
	case outcome != slots.Written:
		p.n.failed[p.o.name]++
	case p.n.failed[p.o.name] > 0: // what could not be claimed follows
		delete(p.n.failed, p.o.name)
		for number := range maxSlot {
			p.n.delay(slots.Ref{Instance: p.o.name, Slot: number}, p.n.w.now)
		}
	}
	if p.n.watched[p.o.name] { // a machine may forget what it has left
		p.n.learn(p.o.name, record)
	}
	result := slots.Result{Outcome: outcome, Record: record.event(), Gone: gone}
	if p.release {
		result.Tried = p.version
		p.n.step(slots.ReleaseSettled{Instance: p.o.name, Slots: numbers, Result: result})
		return
	}
	result.Kept = p.kept
	p.n.step(slots.ClaimSettled{Instance: p.o.name, Slots: numbers, Result: result})
}

// notify sends a change of an object to a node that watches it, in order, now or late.
func (n *node) notify(o *object) {
	selected := o.exists && o.labels[n.name]
	if !selected && !n.watched[o.name] || n.m == nil {
		return
	}
	if n.w.now < n.cutOff {
		return // it is listed again at the end of the outage
	}
	n.watched[o.name] = selected
	record := o.record()
	var e slots.Event = slots.InstanceRecorded{Instance: o.name, Record: record.Record}
	switch {
	case !o.exists:
		e = slots.InstanceDeleted{Instance: o.name, Version: o.version}
	case !selected:
		e = slots.InstanceLeft{Instance: o.name}
	}
	delay := time.Millisecond + n.w.upTo(20*time.Millisecond)
	if !n.w.calm && n.w.chance(10) {
		delay = n.w.upTo(2 * time.Second)
	}
	n.delivered = max(n.delivered, n.w.now+delay)
	for number := range maxSlot { // until then, the agent does not know the slot's owner
		if ref := (slots.Ref{Instance: o.name, Slot: number}); n.sent[ref] != o.usage[number] {
			n.sent[ref] = o.usage[number]
			n.delay(ref, n.delivered)
		}
	}
	epoch := n.epoch
	n.w.after(n.delivered-n.w.now, func() {
		if epoch == n.epoch {
			before := n.ownSlots(o.name)
			if _, ok := e.(slots.InstanceRecorded); ok {
				n.learn(o.name, &record)
			} else {
				n.leave(o)
			}
			n.step(e)
			if n.capacityOf(o.name) != n.capacity[o.name] {
				n.publish(o.name)
			}
			if !maps.Equal(before, n.ownSlots(o.name)) { // by a late patch, or by a user
				n.observeSoon()
			}
		}
	})
}

// leave ends what the agent of a node knows of an Instance. What it does not know then, as
// a claim that was written late while it was cut off, it cannot release.
func (n *node) leave(o *object) {
	known := n.ownSlots(o.name)
	for number, owner := range o.usage {
		if owner.Node == n.name && known[number] != owner && !slices.Contains(n.unseen, o.name) {
			n.unseen = append(n.unseen, o.name)
		}
	}
	delete(n.known, o.name)
}

// ownSlots returns the slots that this node owns, as far as its agent knows.
func (n *node) ownSlots(instance string) map[int]v0.Owner {
	owned := maps.Clone(n.known[instance].Usage)
	maps.DeleteFunc(owned, func(_ int, owner v0.Owner) bool { return owner.Node != n.name })
	return owned
}

// listAgain reads all objects, after the watch was interrupted.
func (n *node) listAgain() {
	for _, name := range n.w.names {
		n.notify(n.w.objects[name])
	}
}
