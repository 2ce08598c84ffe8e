package slots

import (
	"maps"
	"slices"

	v0 "akri.sh/akri/api/v0"
)

func (e DevicePublished) apply(m *Machine) []Command {
	inst := m.instance(e.Instance)
	inst.published, inst.shared, inst.online = true, e.Shared, e.Online
	inst.capacity = min(max(e.Capacity, 0), v0.MaxSlots)
	for number := range inst.capacity {
		inst.slot(number)
	}
	m.join(inst, e.Configuration)
	m.changed(inst)
	return m.resume(inst)
}

func (e DeviceWithdrawn) apply(m *Machine) []Command {
	inst := m.instances[e.Instance]
	if inst == nil {
		return nil
	}
	inst.published, inst.online = false, false
	m.changed(inst)
	return m.resume(inst)
}

// advertise returns the lists that differ from the kubelet's, and forgets Instances
// and groups that no longer have any state.
func (m *Machine) advertise() []Command {
	var commands []Command
	for _, name := range slices.Sorted(maps.Keys(m.dirty)) {
		inst := m.dirty[name]
		commands = append(commands, inst.list.advertise(Resource{Name: name}, m.list(inst), inst.published)...)
		m.forget(inst)
		if m.instances[name] == nil {
			delete(m.alarms, Resource{Name: name})
			continue
		}
		m.schedule(Resource{Name: name}, m.due(inst))
	}
	clear(m.dirty)
	for _, name := range slices.Sorted(maps.Keys(m.dirtyGroups)) {
		commands = append(commands, m.advertiseGroup(m.dirtyGroups[name])...)
	}
	clear(m.dirtyGroups)
	return commands
}

// list returns the list of an Instance's slots for the kubelet. At most as many free
// slots are healthy as the capacity allows: a shrink can leave owners beyond it.
func (m *Machine) list(inst *instance) []Health {
	wanted := map[int]bool{}
	if inst.published {
		left := inst.capacity - inst.owners
		for _, number := range inst.numbers() {
			s := inst.slots[number]
			own := s.owner() == v0.Owner{Node: m.node} || s.want() == v0.Owner{Node: m.node}
			switch {
			case number >= inst.capacity:
				// A slot in use is unhealthy, so that its container keeps it and no other
				// gets it.
				if own && inst.list.entries[number] == nil {
					wanted[number] = false
				}
			case own:
				wanted[number] = inst.online && inst.ready(number, s)
			case inst.usable(number, s) && left > 0:
				wanted[number] = inst.online
				left--
			default:
				wanted[number] = false
			}
		}
	}
	return inst.list.update(wanted, m.now, func(number int) bool { return m.mustStayListed(inst, number) })
}

// mustStayListed reports whether a slot stays listed although it is beyond the capacity or the
// device is gone: a container has it, or a patch or a call is in flight.
func (m *Machine) mustStayListed(inst *instance, number int) bool {
	s := inst.slots[number]
	if s != nil && (s.busy() || !s.held.Free() || s.recorded == v0.Owner{Node: m.node}) {
		return true
	}
	return m.awaited(Resource{Name: inst.name})
}

// awaited reports whether a call of a resource is in progress.
func (m *Machine) awaited(r Resource) bool {
	return slices.ContainsFunc(m.waiting, func(c *pendingCall) bool { return c.resource == r })
}

// forget removes slots, and the Instance, if they no longer have any state.
func (m *Machine) forget(inst *instance) {
	if inst.published {
		return
	}
	if inst.left && !m.holds(inst) {
		inst.recorded, inst.usage, inst.left = false, nil, false
		for _, s := range inst.slots {
			s.recorded = v0.Owner{}
		}
	}
	for number, s := range inst.slots {
		if s.free() && !s.busy() && inst.list.entries[number] == nil {
			delete(inst.slots, number)
		}
	}
	m.changed(inst)
	if !inst.recorded && len(inst.slots) == 0 && inst.list.advertised == nil {
		if inst.group != nil {
			m.quit(inst)
		}
		delete(m.instances, inst.name)
	}
}

// holds reports whether a container of this node may have a slot, or the record
// may name this node.
func (m *Machine) holds(inst *instance) bool {
	for _, s := range inst.slots {
		if s.busy() || !s.held.Free() || s.recorded.Node == m.node {
			return true
		}
	}
	return false
}
