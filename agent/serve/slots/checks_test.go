package slots_test

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"akri.sh/akri/agent/serve/slots"
	v0 "akri.sh/akri/api/v0"
)

// releaseTime is within which a slot without a container is free (I7).
const releaseTime = 12 * time.Second

// learn records what the agent of a node knows of an Instance.
func (n *node) learn(name string, r *snapshot) {
	if r != nil && r.Version >= n.known[name].Version {
		n.known[name] = *r
	}
}

// uses reports whether a container of a node has a slot, or the kubelet thinks so.
func (n *node) uses(ref slots.Ref) bool {
	return slices.ContainsFunc(n.pods, func(p *pod) bool { return p.usesSlot(ref) })
}

func (p *pod) usesSlot(ref slots.Ref) bool {
	return slices.ContainsFunc(p.uses, func(u use) bool { return u.ref == ref })
}

// delay records that something delays the release of a slot until a time.
func (n *node) delay(ref slots.Ref, until time.Duration) { n.delays[ref] = max(n.delays[ref], until) }

// delayUses records that something delays the release of the slots that a Pod has, and of
// those that this node owns through its IDs.
func (n *node) delayUses(p *pod) {
	for _, u := range p.uses {
		n.delay(u.ref, n.w.now)
	}
	for _, r := range p.requests {
		for _, id := range r.ids {
			n.delayID(r.resource, id)
		}
	}
}

// delayID records that something delays the release of the slots that this node owns
// through an ID.
func (n *node) delayID(r slots.Resource, id int) {
	if !r.Group {
		n.delay(slots.Ref{Instance: r.Name, Slot: id}, n.w.now)
		return
	}
	for name, o := range n.w.objects {
		for number, owner := range o.usage {
			if owner == (v0.Owner{Node: n.name, VirtualID: strconv.Itoa(id)}) {
				n.delay(slots.Ref{Instance: name, Slot: number}, n.w.now)
			}
		}
	}
}

// resourceOf returns the name of the resource with which an owner has a slot.
func resourceOf(ref slots.Ref, owner v0.Owner) string {
	if owner.VirtualID != "" {
		return configuration
	}
	return ref.Instance
}

// checkRelease checks that a slot that no container of its owner has does not stay
// owned (I7). The time begins when nothing delays the release any more.
func (n *node) checkRelease(o *object, number int, owner v0.Owner) {
	ref := slots.Ref{Instance: o.name, Slot: number}
	unseen := slices.Contains(n.unseen, o.name) && !o.labels[n.name]
	if n.uses(ref) {
		n.used[ref] = n.w.now
		return
	}
	if n.m == nil || n.w.now < n.initial {
		n.restless = max(n.restless, n.w.now)
	}
	if n.mayUse(owner) || unseen {
		n.delay(ref, n.w.now)
	}
	if since := n.restsSince(o, number, owner); n.w.now-since > releaseTime {
		n.w.fail("I7: %s is owned by %q although no container has had it for %s", ref, owner, n.w.now-since)
	}
}

// restsSince returns when something last delayed the release of a slot.
func (n *node) restsSince(o *object, number int, owner v0.Owner) time.Duration {
	ref := slots.Ref{Instance: o.name, Slot: number}
	since := max(n.used[ref], n.restless, n.delays[ref], n.open[resourceOf(ref, owner)], o.since[number])
	if n.w.edited[ref] { // its container may have had it through the other resource
		since = max(since, n.open[o.name], n.open[configuration])
	}
	return since
}

// countRelease counts a release. It is excused if something else than its container delayed
// it for more than half of the time.
func (n *node) countRelease(o *object, number int, owner v0.Owner) {
	used := max(n.used[slots.Ref{Instance: o.name, Slot: number}], o.since[number])
	n.w.stats.Checks.judge(released, 2*(n.restsSince(o, number, owner)-used) <= n.w.now-used)
}

// checkWritten checks that the owners of slots are recorded. Those of local devices are
// given before, and those of an Instance that was deleted are written again.
func (n *node) checkWritten() {
	for _, p := range n.pods {
		for _, u := range p.uses {
			o := n.w.objects[u.ref.Instance]
			since := max(n.restless, n.delays[u.ref], o.since[u.ref.Slot])
			if !p.running || !p.booked || !o.exists || n.w.now-p.answered <= releaseTime {
				continue
			}
			bound := 2*time.Second + time.Second<<min(n.failed[o.name], 6) // the delay of a claim that fails again doubles
			judged := o.labels[n.name] && !n.w.excused[u.ref] && n.w.now-since > bound
			if n.w.stats.Checks.judge(written, judged) && o.usage[u.ref.Slot] != u.owner {
				n.w.fail("I2: %s is used as %q for %s, but the record names %q", u.ref, u.owner, n.w.now-since, o.usage[u.ref.Slot])
			}
		}
	}
}

// mayUse reports whether a Pod has the virtual ID of an owner: the agent cannot know
// then that a second slot with this ID is not used.
func (n *node) mayUse(owner v0.Owner) bool {
	if owner.VirtualID == "" {
		return false
	}
	return slices.ContainsFunc(n.pods, func(p *pod) bool {
		id, err := strconv.Atoi(owner.VirtualID)
		return err == nil && p.has(slots.Resource{Name: configuration, Group: true}, id)
	})
}

// checkCommands checks what a machine orders against what its node knows.
func (n *node) checkCommands(commands []slots.Command) {
	for _, command := range commands {
		switch c := command.(type) {
		case slots.Claim:
			owners, further := 0, 0
			n.held[c.Instance] = n.holds(c.Instance)
			for _, owner := range n.known[c.Instance].Usage {
				if !owner.Free() {
					owners++
				}
			}
			for number := range c.Owners {
				if n.known[c.Instance].Usage[number].Free() && !n.held[c.Instance][number] {
					further++
				}
			}
			if capacity := n.capacity[c.Instance]; further > 0 && owners+further > capacity {
				n.w.fail("I3: %s claims %v of %s, but %d of %d slots have owners", n.name, c.Owners, c.Instance, owners, capacity)
			}
			for number, owner := range c.Owners {
				if owner.Node != n.name {
					n.w.fail("I1: %s claims %s-%d for %q", n.name, c.Instance, number, owner)
				}
			}
		case slots.Release:
			for number, owner := range c.Owners {
				ref := slots.Ref{Instance: c.Instance, Slot: number}
				if owner.Node != n.name {
					n.w.fail("I1: %s releases %s of %q", n.name, ref, owner)
				}
				if n.onlyForced(ref) && !n.proven(ref, owner) { // the known limit in doc.go
					n.w.excused[ref] = true
				}
			}
		}
	}
}

// holds returns the slots that the agent thinks a container may have: they are claimed
// again then, whatever the capacity.
func (n *node) holds(instance string) map[int]bool {
	held := map[int]bool{}
	for _, inst := range n.m.State().Instances {
		for _, s := range inst.Slots {
			if inst.Name == instance && !s.Held.Free() {
				held[s.Slot] = true
			}
		}
	}
	return held
}

// proofTime is how long observations must list a virtual ID before an agent that has
// started believes that the container has the slot of the record.
const proofTime = 5 * time.Second

// proven reports whether the agent of a node has given a slot to a container since its
// start, or observations have shown that one has it.
func (n *node) proven(ref slots.Ref, owner v0.Owner) bool {
	listed := slots.Use{Resource: ref.Instance, ID: ref.String()}
	if owner.VirtualID != "" {
		listed = slots.Use{Resource: configuration, ID: owner.VirtualID}
	}
	since, found := n.listed[listed]
	return n.given[ref] || found && (owner.VirtualID == "" || n.observedAt-since >= proofTime)
}

// onlyForced reports whether only containers of Pods that were deleted by force use a
// slot.
func (n *node) onlyForced(ref slots.Ref) bool {
	return !slices.ContainsFunc(n.pods, func(p *pod) bool {
		return !p.ended && slices.ContainsFunc(p.uses, func(u use) bool { return u.ref == ref })
	})
}

// mayReport reports whether a conflict is due to a user. An agent that starts after a
// user has removed its node's label from an Instance does not know which slots the IDs
// of its containers have.
func (n *node) mayReport(ref slots.Ref) bool {
	if ref.Instance == configuration { // an ID without a slot
		return len(n.unseen) > 0 || len(n.w.edited) > 0
	}
	return n.w.edited[ref]
}

// countConflicts counts, per slot, whether a reported conflict would be judged.
func (n *node) countConflicts() {
	for _, name := range n.w.names {
		for number := range maxSlot {
			n.w.stats.Checks.judge(conflict, !n.mayReport(slots.Ref{Instance: name, Slot: number}))
		}
	}
}

// checkAnswer checks one answer to the kubelet.
func (n *node) checkAnswer(s *step, a slots.Answer) {
	r := &s.pod.requests[s.request]
	if took := n.w.now - s.sent; took > deadline {
		n.w.fail("I8: %s answered call %d after %s", n.name, a.Call, took)
	}
	if s.unlisted {
		n.w.stats.Checks.judge(unlisted, true)
		if a.Err == nil {
			n.w.fail("I6: %s gives %v for %v of %s, which it does not list", n.name, a.Slots, r.ids, r.resource.Name)
		}
	}
	refused := n.checkRefusal(r, a)
	if s.owned {
		n.w.stats.Checks.judge(ownCall, !refused)
	}
	if a.Err != nil {
		return
	}
	if len(a.Slots) != len(r.ids) {
		n.w.fail("call %d names %d IDs and gets %d slots", a.Call, len(r.ids), len(a.Slots))
		return
	}
	for i, ref := range a.Slots {
		if !r.resource.Group && ref != (slots.Ref{Instance: r.resource.Name, Slot: r.ids[i]}) {
			n.w.fail("call %d gets %s for ID %d", a.Call, ref, r.ids[i])
		}
		for _, other := range a.Slots[:i] {
			if r.resource.Group && other.Instance == ref.Instance || other == ref {
				n.w.fail("I5: a container on %s gets %s and %s", n.name, other, ref)
			}
		}
	}
	if s.container > 0 && n.w.stats.Checks.judge(sameSlot, !s.moves && n.same(r)) && !slices.Equal(r.answer, a.Slots) {
		n.w.fail("call %d: a pod's containers get %v and %v", a.Call, r.answer, a.Slots)
	}
	r.answer, r.answered = a.Slots, n.w.now
}

// same reports whether the containers of a Pod must get the same slots.
func (n *node) same(r *request) bool {
	return !slices.ContainsFunc(r.answer, func(ref slots.Ref) bool {
		o := n.w.objects[ref.Instance]
		return !o.exists || !n.sees[ref.Instance] || !n.up[ref.Instance] || n.w.excused[ref] || !o.labels[n.name]
	})
}

// current reports whether the agent knows the Instances whose slots a Pod has: they may have
// been created again, or the node may have left them for a moment.
func (n *node) current(r *request) bool {
	return !slices.ContainsFunc(r.answer, func(ref slots.Ref) bool {
		return n.known[ref.Instance].Version < n.w.objects[ref.Instance].created || n.left(ref.Instance)
	})
}

// checkRefusal checks that a call for slots that the node owns is not refused for
// ownership (I4). It reports whether that was excused.
func (n *node) checkRefusal(r *request, a slots.Answer) (excused bool) {
	if !errors.Is(a.Err, slots.ErrTaken) && !errors.Is(a.Err, slots.ErrTooFew) && !errors.Is(a.Err, slots.ErrFull) {
		return false
	}
	if slices.ContainsFunc(r.answer, func(given slots.Ref) bool { return n.w.excused[given] }) {
		return true // a user has edited the slot of the Pod's first container, not the one that the node owns
	}
	instances := map[string]bool{}
	for _, id := range r.ids {
		ref, owned := n.owned(r.resource, id)
		o := n.w.objects[ref.Instance]
		if !owned || n.w.excused[ref] || !n.up[ref.Instance] || !n.sees[ref.Instance] || o.version != n.known[o.name].Version {
			return true
		}
		if n.left(o.name) { // the watch will deliver that it has joined again
			return true
		}
		instances[ref.Instance] = true
	}
	if r.resource.Group && len(instances) < len(r.ids) {
		return true
	}
	n.w.fail("I4: %s owns %v of %s but was refused: %v", n.name, r.ids, r.resource.Name, a.Err)
	return false
}

// owns reports whether a node owns a slot through each ID of a request.
func (n *node) owns(r *request) bool {
	return !slices.ContainsFunc(r.ids, func(id int) bool {
		_, owned := n.owned(r.resource, id)
		return !owned
	})
}

// left reports whether the agent of a node knows that an Instance lacks its label.
func (n *node) left(instance string) bool {
	return slices.ContainsFunc(n.m.State().Instances, func(i slots.InstanceState) bool { return i.Name == instance && i.Left })
}

// owned returns the slot that a node owns through an ID, if there is exactly one and no
// container has it as another owner. A claim that was given up may be written so late
// that the slot of a local device is in use again, through the other resource.
func (n *node) owned(r slots.Resource, id int) (found slots.Ref, ok bool) {
	if !r.Group {
		found, owner := slots.Ref{Instance: r.Name, Slot: id}, v0.Owner{Node: n.name}
		return found, n.w.objects[r.Name].usage[id] == owner && !n.usesOtherwise(found, owner)
	}
	wanted := v0.Owner{Node: n.name, VirtualID: strconv.Itoa(id)}
	for _, name := range n.w.names {
		for number, owner := range n.w.objects[name].usage {
			if owner == wanted {
				if ok {
					return found, false
				}
				found, ok = slots.Ref{Instance: name, Slot: number}, true
			}
		}
	}
	return found, ok && !n.usesOtherwise(found, wanted) && (n.proven(found, wanted) || !n.ambiguous(wanted.VirtualID))
}

// ambiguous reports whether the agent knows several slots with a virtual ID. After its
// start, one of them may be that of an old record.
func (n *node) ambiguous(id string) bool {
	return slices.ContainsFunc(n.m.State().Groups, func(g slots.GroupState) bool {
		return slices.ContainsFunc(g.IDs, func(s slots.IDState) bool { return s.ID == id && len(s.Slots) > 1 })
	})
}

// usesOtherwise reports whether a container has a slot as another owner than the given
// one, as far as the agent can know.
func (n *node) usesOtherwise(ref slots.Ref, owner v0.Owner) bool {
	return slices.ContainsFunc(slices.Concat(n.pods, n.unnoticed), func(p *pod) bool {
		return slices.ContainsFunc(p.uses, func(u use) bool { return u.ref == ref && u.owner != owner })
	})
}
