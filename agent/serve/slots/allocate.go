package slots

import (
	"cmp"
	"slices"

	v0 "akri.sh/akri/api/v0"
)

func (e AllocateRequested) apply(m *Machine) []Command {
	inst := m.instances[e.Instance]
	if inst == nil {
		return []Command{Answer{e.Call, ErrNoSlot}}
	}
	m.name(inst, e.Slots)
	for _, number := range e.Slots {
		if s := inst.slots[number]; s != nil {
			m.touch(s) // a release that began earlier must not free this slot
			s.asked = m.now
		}
	}
	c := &call{id: e.Call, instance: e.Instance, slots: e.Slots}
	commands, done := m.advance(c)
	if !done {
		m.waiting = append(m.waiting, c)
	}
	return commands
}

func (e CallExpired) apply(m *Machine) []Command {
	before := len(m.waiting)
	m.waiting = slices.DeleteFunc(m.waiting, func(c *call) bool { return c.id == e.Call })
	if len(m.waiting) == before {
		return nil
	}
	return []Command{Answer{e.Call, ErrDeadline}}
}

// name records that a call names slots, so that they stay in the list.
func (m *Machine) name(inst *instance, numbers []int) {
	for _, number := range numbers {
		if s := inst.slots[number]; s != nil {
			s.named = m.now
		}
	}
	m.changed(inst)
}

// advance answers a call, requests a claim for it, or lets it wait for a patch in
// flight. It reports whether the call is answered.
func (m *Machine) advance(c *call) ([]Command, bool) {
	refuse := func(err error) ([]Command, bool) { return []Command{Answer{c.id, err}}, true }
	inst := m.instances[c.instance]
	if inst == nil {
		return refuse(ErrGone)
	}
	var wanted, doubtful []int
	wait := false
	for _, number := range c.slots {
		s := inst.slots[number]
		switch {
		case s == nil:
			return refuse(ErrNoSlot)
		case !inst.shared && s.mine(m.node) && s.phase != releasing:
		case s.busy():
			wait = true
		case s.mine(m.node) && inst.doubtful(s):
			doubtful = append(doubtful, number)
		case s.mine(m.node) && !s.unwritten:
		case !s.free() && !s.mine(m.node):
			return refuse(ErrTaken)
		case !inst.published:
			return refuse(ErrGone)
		case number >= inst.capacity && !s.mine(m.node):
			return refuse(ErrNoSlot)
		default:
			wanted = append(wanted, number)
		}
	}
	if wait {
		return nil, false
	}
	if len(doubtful) > 0 {
		return []Command{m.release(inst, doubtful)}, false
	}
	if len(wanted) > 0 && inst.shared {
		return []Command{m.claim(inst, wanted)}, false
	}
	var commands []Command
	if len(wanted) > 0 { // no other node can reach the device, so the record may follow
		for _, number := range wanted {
			s := inst.slots[number]
			s.owner, s.unwritten = v0.Owner{Node: m.node}, true
		}
		commands = append(commands, m.claim(inst, wanted))
	}
	for _, number := range c.slots {
		s := inst.slots[number]
		s.granted, s.asked = true, m.now // the kubelet assigns the slot from now on
	}
	return append([]Command{Answer{c.id, nil}}, commands...), true
}

// claim marks slots as claiming and returns the command.
func (m *Machine) claim(inst *instance, numbers []int) Command {
	for _, number := range numbers {
		inst.slots[number].phase = claiming
	}
	return Claim{inst.name, numbers}
}

func (e ClaimSettled) apply(m *Machine) []Command {
	inst := m.settle(e.Instance, e.Slots, claiming, e.Record)
	if inst == nil {
		return nil
	}
	for _, number := range e.Slots {
		if s := inst.slots[number]; s != nil && e.Outcome != Written {
			s.retryAt = m.now + retryInterval
		}
	}
	commands := m.record(inst, e.Record)
	return append(commands, m.proceed(inst, e.Slots, e.Record)...)
}

// proceed advances the calls that waited for a patch, or refuses them if the API
// server did not respond.
func (m *Machine) proceed(inst *instance, numbers []int, record *Record) []Command {
	if record == nil {
		return m.giveUp(inst, numbers)
	}
	return m.resume(inst.name)
}

// giveUp refuses the calls that wait for these slots and cannot succeed without
// them, and advances the others.
func (m *Machine) giveUp(inst *instance, numbers []int) []Command {
	var commands []Command
	m.waiting = slices.DeleteFunc(m.waiting, func(c *call) bool {
		hopeless := c.instance == inst.name && slices.ContainsFunc(c.slots, func(n int) bool {
			s := inst.slots[n]
			return slices.Contains(numbers, n) && !(s != nil && s.mine(m.node) && !inst.doubtful(s) && !s.unwritten)
		})
		if hopeless {
			commands = append(commands, Answer{c.id, ErrUnavailable})
		}
		return hopeless
	})
	return append(commands, m.resume(inst.name)...)
}

// resume advances the calls that wait for an Instance.
func (m *Machine) resume(instance string) []Command {
	var commands []Command
	m.waiting = slices.DeleteFunc(m.waiting, func(c *call) bool {
		if c.instance != instance {
			return false
		}
		more, done := m.advance(c)
		commands = append(commands, more...)
		return done
	})
	return commands
}

// apply suggests first the slots in Must, then those that this node already owns,
// which cost no request, then free ones, the lowest first.
func (e PreferenceAsked) apply(m *Machine) []Command {
	inst := m.instances[e.Instance]
	if inst == nil {
		return []Command{Suggest{Call: e.Call}}
	}
	m.name(inst, e.Available)
	chosen := slices.Clone(e.Must)
	rest := slices.DeleteFunc(slices.Clone(e.Available), func(n int) bool { return slices.Contains(e.Must, n) })
	slices.SortFunc(rest, func(a, b int) int {
		return cmp.Or(cmp.Compare(m.rank(inst, a), m.rank(inst, b)), cmp.Compare(a, b))
	})
	for _, number := range rest {
		if len(chosen) >= e.Size {
			break
		}
		chosen = append(chosen, number)
	}
	return []Command{Suggest{e.Call, chosen}}
}

// rank orders slots for a suggestion; the lowest rank comes first.
func (m *Machine) rank(inst *instance, number int) int {
	s := inst.slots[number]
	switch {
	case s == nil:
		return 3
	case s.mine(m.node) && !inst.doubtful(s) && s.phase != releasing:
		return 0
	case s.free():
		return 1
	}
	return 2
}
