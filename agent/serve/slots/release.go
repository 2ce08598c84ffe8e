package slots

import (
	"slices"

	v0 "akri.sh/akri/api/v0"
)

func (e PodsObserved) apply(m *Machine) []Command {
	claims, releases := map[string][]int{}, map[string][]int{}
	var commands []Command
	for _, ref := range e.Held {
		inst, s := m.observed(ref, e, true)
		if s == nil {
			continue
		}
		s.granted = true
		switch {
		case s.mine(m.node):
		case s.free():
			s.owner, s.unwritten = v0.Owner{Node: m.node}, true
			if inst.recorded {
				claims[ref.Instance] = append(claims[ref.Instance], ref.Slot)
			}
		default:
			commands = append(commands, m.contradict(inst, ref.Slot, s.owner)...)
		}
	}
	for _, ref := range e.Ended {
		inst, s := m.observed(ref, e, false)
		if s == nil {
			continue
		}
		s.granted, s.contradicted = false, false
		m.changed(inst)
		switch {
		case !s.mine(m.node):
		case !inst.recorded:
			s.owner, s.unwritten = v0.Owner{}, false
		default:
			releases[ref.Instance] = append(releases[ref.Instance], ref.Slot)
		}
	}
	for _, name := range sortedKeys(claims) {
		commands = append(commands, m.claim(m.instances[name], claims[name]))
	}
	for _, name := range sortedKeys(releases) {
		commands = append(commands, m.release(m.instances[name], releases[name]))
	}
	return commands
}

// observed returns the slot to which an observation applies, or nil if it does not
// apply: the slot is unknown, a patch of it is in flight, or a call named it after
// the observation began or so shortly before that the kubelet may not have assigned
// it yet.
func (m *Machine) observed(ref Ref, e PodsObserved, held bool) (*instance, *slot) {
	inst := m.instances[ref.Instance]
	if inst == nil {
		return nil, nil
	}
	s := inst.slots[ref.Slot]
	if s == nil && held && inst.recorded {
		s = inst.slot(ref.Slot)
	}
	if s == nil || s.busy() || s.touched > e.Since {
		return inst, nil
	}
	if !held && e.Began-s.asked < SettleTime {
		return inst, nil
	}
	return inst, s
}

// release marks slots as releasing and returns the command. Unwritten slots need the
// patch too, because a claim may be in flight.
func (m *Machine) release(inst *instance, numbers []int) Command {
	slices.Sort(numbers)
	for _, number := range numbers {
		s := inst.slots[number]
		s.phase, s.unwritten = releasing, false
	}
	return Release{inst.name, numbers}
}

func (e ReleaseSettled) apply(m *Machine) []Command {
	inst := m.settle(e.Instance, e.Slots, releasing, e.Record)
	if inst == nil {
		return nil
	}
	if e.Gone && inst.left { // the watch does not show the deletion
		return append(InstanceDeleted{Instance: e.Instance}.apply(m), m.resume(e.Instance)...)
	}
	for _, number := range e.Slots {
		if s := inst.slots[number]; s != nil && e.Outcome == Unknown {
			s.doubt = max(s.doubt, e.Tried)
		}
	}
	commands := m.record(inst, e.Record)
	return append(commands, m.proceed(inst, e.Slots, e.Record)...)
}
