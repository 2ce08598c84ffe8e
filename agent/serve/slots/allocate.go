package slots

import (
	"maps"
	"slices"

	v0 "akri.sh/akri/api/v0"
)

// pendingCall is a request of the kubelet that has not been answered.
type pendingCall struct {
	id       Call
	resource Resource
	ids      []int
	// targets are the slots chosen for the IDs; of a group, they may change until all
	// are claimed.
	targets []Ref
}

// listOf returns the list of a resource, which may have to be sent again after the step, or
// nil if there is none.
func (m *Machine) listOf(r Resource) *idList {
	if r.Group {
		if g := m.groups[r.Name]; g != nil {
			m.dirtyGroups[r.Name] = g
			return g.list
		}
	} else if inst := m.instances[r.Name]; inst != nil {
		m.dirty[r.Name] = inst
		return inst.list
	}
	return nil
}

func (e AllocateRequested) apply(m *Machine) []Command {
	c := &pendingCall{id: e.Call, resource: e.Resource, ids: e.IDs}
	list := m.listOf(e.Resource)
	if list == nil || slices.ContainsFunc(e.IDs, func(id int) bool { return list.entries[id] == nil }) || repeated(e.IDs) {
		return []Command{Answer{Call: e.Call, Err: ErrNoSlot}}
	}
	m.generation++
	list.name(e.IDs, m.now, m.generation)
	for _, id := range e.IDs {
		if s := m.named(e.Resource, id); s != nil {
			s.generation = m.generation // a release that began earlier must not free this slot
			s.asked = m.now
		}
	}
	commands, done := m.advance(c)
	if !done {
		m.waiting = append(m.waiting, c)
	}
	return commands
}

func repeated(ids []int) bool {
	return len(slices.Compact(slices.Sorted(slices.Values(ids)))) != len(ids)
}

// named returns the slot that an ID of a resource has, or nil.
func (m *Machine) named(r Resource, id int) *slot {
	if !r.Group {
		return m.instances[r.Name].slots[id]
	}
	_, s, _ := m.groups[r.Name].current(m.owner(r, id).VirtualID)
	return s
}

func (e CallExpired) apply(m *Machine) []Command {
	i := slices.IndexFunc(m.waiting, func(c *pendingCall) bool { return c.id == e.Call })
	if i < 0 {
		return nil
	}
	c := m.waiting[i]
	m.waiting = slices.Delete(m.waiting, i, i+1)
	return m.refuse(c, ErrDeadline)
}

// refuse ends a call, and releases what was claimed for it: no container has had it.
func (m *Machine) refuse(c *pendingCall, err error) []Command {
	m.listOf(c.resource)
	commands := []Command{Answer{Call: c.id, Err: err}}
	unwanted := map[string][]int{}
	for _, ref := range c.targets {
		unwanted[ref.Instance] = append(unwanted[ref.Instance], ref.Slot)
	}
	for _, name := range slices.Sorted(maps.Keys(unwanted)) {
		commands = append(commands, m.releaseUnwanted(name, unwanted[name], c)...)
	}
	return commands
}

// releaseUnwanted releases those of the slots that this node owns although no container
// has them and no call but c waits for them.
func (m *Machine) releaseUnwanted(name string, numbers []int, c *pendingCall) []Command {
	inst := m.instances[name]
	if inst == nil || !inst.recorded {
		return nil
	}
	owners := map[int]v0.Owner{}
	for _, number := range numbers {
		s := inst.slots[number]
		if s != nil && s.state() == recorded && s.recorded.Node == m.node && !s.busy() && !m.targeted(Ref{name, number}, c) {
			owners[number] = s.recorded
		}
	}
	if len(owners) == 0 {
		return nil
	}
	return []Command{m.release(inst, owners)}
}

// targeted reports whether a call other than c waits for a slot.
func (m *Machine) targeted(ref Ref, c *pendingCall) bool {
	return slices.ContainsFunc(m.waiting, func(o *pendingCall) bool { return o != c && slices.Contains(o.targets, ref) })
}

// advance answers a call, requests the claims it needs, or lets it wait for a patch in
// flight. It reports whether the call is answered.
func (m *Machine) advance(c *pendingCall) ([]Command, bool) {
	var wait bool
	var err error
	if c.resource.Group {
		g := m.groups[c.resource.Name]
		if g == nil {
			return m.refuse(c, ErrGone), true
		}
		var targets []Ref
		targets, wait, err = m.plan(g, c)
		if targets != nil {
			c.targets = targets
		}
	} else if c.targets == nil {
		for _, id := range c.ids {
			c.targets = append(c.targets, Ref{c.resource.Name, id})
		}
	}
	if wait {
		return nil, false
	}
	if err != nil {
		return m.refuse(c, err), true
	}
	return m.take(c)
}

// take gives the targets of a call to its container, if this node owns them. Otherwise
// it requests what is missing.
func (m *Machine) take(c *pendingCall) ([]Command, bool) {
	claims, releases, later := map[string]map[int]v0.Owner{}, map[string]map[int]v0.Owner{}, map[string]map[int]v0.Owner{}
	wait := false
	for i, ref := range c.targets {
		inst := m.instances[ref.Instance]
		if inst == nil {
			return m.refuse(c, ErrGone), true
		}
		owner := m.owner(c.resource, c.ids[i])
		next, err := m.need(inst, ref.Slot, owner)
		more := len(claims[inst.name]) + len(later[inst.name])
		if err == nil && next == claimIt && inst.slots[ref.Slot].free() && inst.owners+more >= inst.capacity {
			err = ErrFull
		}
		if err != nil {
			return m.refuse(c, err), true
		}
		switch {
		case next == waitForIt:
			wait = true
		case next == releaseIt:
			add(releases, ref, owner)
		case next == claimIt && inst.shared:
			add(claims, ref, owner)
		case next == claimIt:
			add(later, ref, owner)
		}
	}
	var commands []Command
	for _, name := range slices.Sorted(maps.Keys(releases)) {
		for number := range releases[name] { // the kubelet knows that its container has terminated
			m.instances[name].slots[number].hold(v0.Owner{}, false)
		}
		commands = append(commands, m.release(m.instances[name], releases[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		commands = append(commands, m.claim(m.instances[name], claims[name]))
	}
	if wait || len(commands) > 0 {
		return commands, false
	}
	return m.grant(c, later), true
}

func add(to map[string]map[int]v0.Owner, ref Ref, owner v0.Owner) {
	if to[ref.Instance] == nil {
		to[ref.Instance] = map[int]v0.Owner{}
	}
	to[ref.Instance][ref.Slot] = owner
}

// grant answers a call. Slots of local devices that this node does not own yet are
// claimed afterwards: no other node can reach the device.
func (m *Machine) grant(c *pendingCall, claims map[string]map[int]v0.Owner) []Command {
	m.listOf(c.resource)
	commands := []Command{Answer{Call: c.id, Slots: c.targets}}
	for i, ref := range c.targets {
		inst, owner := m.instances[ref.Instance], m.owner(c.resource, c.ids[i])
		s := inst.slots[ref.Slot]
		s.hold(owner, false)
		s.asked, s.answered = m.now, m.now // the kubelet assigns the slot from now on
		m.exclude(s)
		m.changed(inst)
		if !c.resource.Group {
			continue
		}
		if v := m.groups[c.resource.Name].virtual[owner.VirtualID]; v != nil {
			for other, each := range v.slots {
				// A slot that was given just before may be that of an init container of the
				// same pod: it is kept as long as the ID is in use.
				each.superseded = other != ref && m.now-each.answered >= Quiet
			}
			v.current = ref
		}
	}
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		commands = append(commands, m.claim(m.instances[name], claims[name]))
	}
	return commands
}

// step is what a slot needs before a container can be given it.
type step int

const (
	nothing step = iota
	waitForIt
	releaseIt
	claimIt
)

// need returns what a slot needs before a container can be given it with an owner, or
// why it cannot.
func (m *Machine) need(inst *instance, number int, owner v0.Owner) (step, error) {
	s := inst.slots[number]
	if s == nil {
		return 0, ErrNoSlot
	}
	own := s.owner() == owner
	switch {
	case own && !inst.shared && !s.contested() && !s.ending():
		return nothing, nil
	case s.busy():
		return waitForIt, nil
	case s.contested():
		return 0, ErrTaken
	case own && inst.releaseUncertain(s) && m.mayBeHeld(inst, number, s):
		return waitForIt, nil
	case own && inst.releaseUncertain(s) && inst.suspended():
		return 0, ErrUnavailable
	case own && inst.releaseUncertain(s):
		return releaseIt, nil
	case own && s.state() != unrecorded:
		return nothing, nil
	case inst.suspended(): // the record may be out of date, too
		return 0, ErrUnavailable
	case !own && !s.free():
		return 0, ErrTaken
	case !inst.published || inst.gone && inst.shared:
		return 0, ErrGone
	case s.free() && number >= inst.capacity:
		return 0, ErrNoSlot
	case inst.awaited[number] && (s.free() || s.assumed):
		return 0, ErrTaken
	}
	return claimIt, nil
}

// mayBeHeld reports whether a container that the kubelet no longer lists may still
// have a slot: that of a Pod that was deleted by force. The kubelet offers its ID again
// at once, but other nodes must not see the slot free, not even for a moment. The call
// waits for the next observation.
func (m *Machine) mayBeHeld(inst *instance, number int, s *slot) bool {
	return !s.held.Free() && slices.Contains(m.unaccounted, inst.use(number, s.held).Resource)
}

// claim marks slots as claiming and returns the command.
func (m *Machine) claim(inst *instance, owners map[int]v0.Owner) Claim {
	for number, owner := range owners {
		inst.slots[number].patch = patch{claiming, owner, inst.version}
	}
	m.changed(inst)
	return Claim{Instance: inst.name, Owners: owners}
}

// rewrite writes the owners of slots that a container has, and whose record differs. A
// claim of this agent that was given up may have been written late, with another owner:
// it is released first.
func (m *Machine) rewrite(inst *instance, numbers []int) []Command {
	claims, releases := map[int]v0.Owner{}, map[int]v0.Owner{}
	for _, number := range numbers {
		if owner := inst.usage[number]; owner.Node == m.node && owner != inst.slots[number].held {
			releases[number] = owner
		} else {
			claims[number] = inst.slots[number].held
		}
	}
	var commands []Command
	if len(claims) > 0 {
		claim := m.claim(inst, claims)
		claim.InUse = true
		commands = append(commands, claim)
	}
	if len(releases) > 0 {
		commands = append(commands, m.release(inst, releases))
	}
	return commands
}

// apply adopts the record that the API server returned, whatever the outcome of the claim: the
// calls that wait for the Instance are decided by it. If no claimed slot was given, and
// the record could not be written, the Instance is suspended until a probe succeeds.
// Slots that no waiting call wants any longer are released.
func (e ClaimSettled) apply(m *Machine) []Command {
	inst := m.instances[e.Instance]
	if inst == nil {
		return nil
	}
	sent := m.settle(inst, e.Slots, claiming, e.Outcome == Written && !e.Kept)
	inst.believe(e.Record, sent)
	outdated := e.Gone && inst.recordedAfter(sent)
	if e.Outcome == Written {
		inst.retry = retry{}
	}
	if e.Outcome != Written && !e.Gone && inst.held(e.Slots) {
		m.suspend(inst)
	}
	var commands []Command
	if e.Gone && !outdated {
		commands = m.deleted(inst)
	} else {
		commands = m.record(inst, e.Record)
	}
	refused := len(e.Slots) > 0
	for _, number := range e.Slots {
		if s := inst.slots[number]; s != nil {
			refused = refused && (s.free() || s.state() == unrecorded)
		}
	}
	switch {
	case e.Outcome == Written || e.Gone:
	case refused:
		m.suspend(inst)
	case len(inst.unwritten()) == 0: // a slot was taken, so the API server does respond
		m.recovered(inst)
		m.changed(inst)
	}
	commands = append(commands, m.resume(inst)...)
	return append(commands, m.releaseUnwanted(inst.name, e.Slots, nil)...)
}

// resume advances the calls that may wait for an Instance.
func (m *Machine) resume(inst *instance) []Command {
	var commands []Command
	for _, c := range slices.Clone(m.waiting) {
		if c.resource.Name != inst.name && (inst.group == nil || c.resource.Name != inst.group.name) {
			continue
		}
		commands = append(commands, m.retry(c)...)
	}
	return commands
}

// retry advances a call that waits.
func (m *Machine) retry(c *pendingCall) []Command {
	commands, done := m.advance(c)
	if done {
		m.waiting = slices.DeleteFunc(m.waiting, func(o *pendingCall) bool { return o == c })
	}
	return commands
}
