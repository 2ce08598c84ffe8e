package slots

import (
	"fmt"

	v0 "akri.sh/akri/api/v0"
)

// The invariants:
//
//	I1  a slot has one owner, which changes only through free
//	I2  no slot of a live container is ever free
//	I3  no slot is given while as many slots have owners as the capacity
//	I4  a request of the node that already owns the slot never fails for ownership
//	I5  the devices of one container are distinct Instances
//	I6  no ID leaves the list within [Quiet] of a call naming it, and a call naming an
//	    unlisted ID is refused
//	I7  a slot that no container has is free within 12 s
//	I8  each Allocate is answered within its deadline, exactly once
//	I9  restarts of agent, kubelet and API server change no owner of a running Pod
//
// Violations verifies what one node's view can show of them. The random schedules of
// model_test.go verify all of them, across nodes and containers.
func (m *Machine) Violations() (found []string) {
	report := func(invariant string, where any, format string, args ...any) {
		found = append(found, fmt.Sprintf("%s %v: %s", invariant, where, fmt.Sprintf(format, args...)))
	}
	own := v0.Owner{Node: m.node}
	for name, inst := range m.instances {
		owners, unused := 0, 0
		for number, s := range inst.slots {
			where, healthy := Ref{name, number}, inst.list.healthy(number)
			switch {
			case healthy && !s.free() && s.owner() != own:
				report("I1", where, "healthy although %q owns it", s.owner())
			case healthy && !inst.published:
				report("I6", where, "healthy although the device is gone")
			case healthy && number >= inst.capacity:
				report("I3", where, "healthy beyond the capacity of %d", inst.capacity)
			case healthy && inst.list.entries[number] == nil:
				report("I6", where, "healthy although it is not listed")
			}
			usable := inst.published && inst.online && inst.recorded && inst.watched() && !inst.suspended() && number < inst.capacity
			if usable && s.owner() == own && !s.contested() && !inst.othersFirst(number, s) && !healthy {
				report("I4", where, "unhealthy although this node owns it")
			}
			if !s.free() || s.want() != (v0.Owner{}) {
				owners++
			} else if healthy {
				unused++
			}
		}
		if unused > 0 && owners+unused > inst.capacity {
			report("I3", name, "%d free slots are healthy although %d of %d have owners", unused, owners, inst.capacity)
		}
	}
	for name, g := range m.groups {
		unused := 0
		for _, h := range g.list.advertised {
			if h.Healthy && g.virtual[fmt.Sprint(h.ID)] == nil {
				unused++
			}
		}
		if unused > len(g.offering) {
			report("I5", name, "%d unused IDs are healthy, but only %d Instances have a slot", unused, len(g.offering))
		}
	}
	for _, c := range m.waiting {
		instances := map[string]bool{}
		for _, ref := range c.targets {
			if c.resource.Group && instances[ref.Instance] {
				report("I5", ref, "call %d of %s gets two slots of the Instance", c.id, c.resource.Name)
			}
			instances[ref.Instance] = true
		}
	}
	return found
}
