package slots

import (
	"fmt"

	v0 "akri.sh/akri/api/v0"
)

func (e InstanceRecorded) apply(m *Machine) []Command {
	inst := m.instance(e.Instance)
	inst.left = false
	commands := m.record(inst, &e.Record)
	return append(commands, m.resume(e.Instance)...)
}

func (e InstanceLeft) apply(m *Machine) []Command {
	inst := m.instances[e.Instance]
	if inst == nil {
		return nil
	}
	inst.left = true
	m.changed(inst)
	return nil
}

func (e InstanceDeleted) apply(m *Machine) []Command {
	inst := m.instances[e.Instance]
	if inst == nil {
		return nil
	}
	inst.left = false
	inst.recorded, inst.usage, inst.version = false, nil, max(inst.version, e.Version)
	for _, s := range inst.slots {
		switch {
		case s.busy(): // its result follows
		case s.granted && s.mine(m.node):
			s.unwritten = true // the device may be published again
		default:
			s.owner, s.contradicted, s.unwritten = v0.Owner{}, false, false
		}
	}
	m.changed(inst)
	return nil
}

// record adopts a later record for all slots without a patch in flight. The others
// change when their patch settles.
func (m *Machine) record(inst *instance, record *Record) []Command {
	if record != nil && record.Version >= inst.version { // the watch may lag behind this node's own patches
		inst.recorded, inst.version, inst.usage = true, record.Version, record.Usage
	}
	if !inst.recorded {
		return nil
	}
	for number, owner := range inst.usage {
		if !owner.Free() {
			inst.slot(number)
		}
	}
	var commands []Command
	var again []int
	for _, number := range inst.numbers() {
		if s := inst.slots[number]; !s.busy() {
			report, reclaim := m.takeOver(inst, number, inst.usage[number])
			commands = append(commands, report...)
			if reclaim {
				again = append(again, number)
			}
		}
	}
	m.changed(inst)
	if len(again) > 0 {
		commands = append(commands, m.claim(inst, again))
	}
	return commands
}

// takeOver sets the owner of one slot from the record. A slot that is free in the
// record although a container of this node has it is claimed again. It reports
// whether a claim is due.
func (m *Machine) takeOver(inst *instance, number int, owner v0.Owner) (report []Command, reclaim bool) {
	s := inst.slots[number]
	if owner.Free() && s.granted {
		s.owner, s.unwritten, s.contradicted = v0.Owner{Node: m.node}, true, false
		return nil, s.retryAt <= m.now
	}
	if !owner.Free() && owner != (v0.Owner{Node: m.node}) && s.granted {
		return m.contradict(inst, number, owner), false
	}
	// This is the first record of the slot. A container may have been given it
	// just before this agent started, so it counts as granted until an observation.
	if owner == (v0.Owner{Node: m.node}) && s.owner != owner && s.touched == 0 {
		s.granted, s.asked = true, m.now
	}
	s.owner, s.unwritten, s.contradicted = owner, false, false
	return nil, false
}

// contradict marks a slot that a container of this node has although the record names
// another owner. The slot stays unhealthy until a user corrects the record.
func (m *Machine) contradict(inst *instance, number int, owner v0.Owner) []Command {
	s := inst.slots[number]
	known := s.contradicted && s.owner == owner
	s.owner, s.unwritten, s.contradicted = owner, false, true
	m.changed(inst)
	if known {
		return nil
	}
	what := fmt.Sprintf("a container of node %s has the slot, but the record names %q", m.node, owner)
	return []Command{Report{Ref{inst.name, number}, what}}
}

// settle ends the patches of slots. It returns nil if the Instance is unknown.
func (m *Machine) settle(name string, numbers []int, patch phase, record *Record) *instance {
	inst := m.instances[name]
	if inst == nil {
		return nil
	}
	for _, number := range numbers {
		if s := inst.slots[number]; s != nil && s.phase == patch {
			s.phase = settled
			m.touch(s)
		}
	}
	if record == nil && !inst.recorded {
		// The Instance was deleted while the patch was in flight.
		for _, number := range numbers {
			if s := inst.slots[number]; s != nil && !s.granted {
				s.owner, s.unwritten = v0.Owner{}, false
			}
		}
	}
	m.changed(inst)
	return inst
}
