package slots

import (
	"maps"
	"slices"
	"time"

	v0 "akri.sh/akri/api/v0"
)

func (e DevicePublished) apply(m *Machine) []Command {
	inst := m.instance(e.Instance)
	inst.published, inst.shared, inst.capacity, inst.online = true, e.Shared, e.Capacity, e.Online
	for number := range e.Capacity {
		inst.slot(number)
	}
	m.changed(inst)
	return m.resume(e.Instance)
}

func (e DeviceWithdrawn) apply(m *Machine) []Command {
	inst := m.instances[e.Instance]
	if inst == nil {
		return nil
	}
	inst.published, inst.online = false, false
	m.changed(inst)
	return m.resume(e.Instance)
}

// advertise returns the lists that differ from the kubelet's, and forgets Instances
// that no longer have any state.
func (m *Machine) advertise() []Command {
	var commands []Command
	for _, name := range slices.Sorted(maps.Keys(m.touched)) {
		inst := m.instances[name]
		if inst == nil {
			continue
		}
		list := m.list(inst)
		switch {
		case len(list) == 0 && len(inst.advertised) > 0 && !inst.published:
			inst.advertised = nil
			commands = append(commands, Withdraw{name})
		case !slices.Equal(list, inst.advertised):
			inst.advertised = list
			commands = append(commands, Advertise{name, list})
		}
		m.forget(inst)
	}
	clear(m.touched)
	return commands
}

// list returns the list of an Instance's slots for the kubelet.
func (m *Machine) list(inst *instance) []Health {
	var list []Health
	for _, number := range inst.numbers() {
		s := inst.slots[number]
		if inst.published && number < inst.capacity {
			s.listed, s.retiring = true, false
			usable := s.free() || s.mine(m.node)
			list = append(list, Health{number, inst.online && usable && !s.contradicted})
			continue
		}
		// The slot is beyond the capacity, or the device is gone. A slot in use is
		// unhealthy, so that its container keeps it and no other gets it.
		if inst.published && s.mine(m.node) {
			s.listed = true
		}
		if !s.listed {
			continue
		}
		if !s.retiring {
			s.retiring, s.retiredAt = true, m.now
		}
		if !m.keeps(inst, s) && m.now-s.quietFrom() >= Quiet {
			s.listed, s.retiring = false, false
			continue
		}
		list = append(list, Health{number, false})
	}
	return list
}

// quietFrom returns when a retiring slot was last healthy or named by a call.
func (s *slot) quietFrom() time.Duration { return max(s.retiredAt, s.named) }

// keeps reports whether a retiring slot stays listed for longer than [Quiet]: a
// container has it, or a patch or a call is in flight. The status of the container's
// pod would show a missing id as healthy.
func (m *Machine) keeps(inst *instance, s *slot) bool {
	if s.busy() || s.granted || s.mine(m.node) {
		return true
	}
	return slices.ContainsFunc(m.waiting, func(c *call) bool { return c.instance == inst.name })
}

// forget removes slots, and the Instance, if they no longer have any state.
func (m *Machine) forget(inst *instance) {
	if inst.published {
		return
	}
	if inst.left && !m.holds(inst) {
		inst.recorded, inst.usage, inst.left = false, nil, false
		for _, s := range inst.slots {
			s.owner, s.unwritten = v0.Owner{}, false
		}
	}
	for number, s := range inst.slots {
		if s.free() && !s.listed && !s.busy() && !s.granted {
			delete(inst.slots, number)
		}
	}
	if !inst.recorded && len(inst.slots) == 0 && inst.advertised == nil {
		delete(m.instances, inst.name)
	}
}

// holds reports whether a container of this node may have a slot, or the record
// may name this node.
func (m *Machine) holds(inst *instance) bool {
	for _, s := range inst.slots {
		if s.granted || s.contradicted || s.busy() || s.mine(m.node) {
			return true
		}
	}
	return false
}

func sortedKeys[V any](set map[string]V) []string { return slices.Sorted(maps.Keys(set)) }
