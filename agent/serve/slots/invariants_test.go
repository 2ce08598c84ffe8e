package slots

import (
	"fmt"
	"slices"

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
// Check verifies what one node's view can show of them. The random schedules of
// model_test.go verify all of them, across nodes and containers.

// Violation is a violated invariant.
type Violation struct {
	Invariant string
	// Where is a slot or a virtual ID.
	Where string
	What  string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s %s: %s", v.Invariant, v.Where, v.What)
}

// Check returns the violations in a state.
func Check(state State) []Violation {
	c := checker{State: state}
	for i := range state.Instances {
		c.instance(&state.Instances[i])
	}
	for i := range state.Groups {
		c.group(&state.Groups[i])
	}
	for i := range state.Waiting {
		c.call(&state.Waiting[i])
	}
	return c.found
}

type checker struct {
	State
	found []Violation
}

func (c *checker) report(invariant, where, format string, args ...any) {
	c.found = append(c.found, Violation{invariant, where, fmt.Sprintf(format, args...)})
}

func (c *checker) instance(inst *InstanceState) {
	owners, free := 0, 0
	for i := range inst.Slots {
		s := &inst.Slots[i]
		c.slot(inst, s)
		if !s.Owner.Free() || s.Patch == "claiming" {
			owners++
		} else if s.Healthy {
			free++
		}
	}
	if free > 0 && owners+free > inst.Capacity {
		c.report("I3", inst.Name, "%d free slots are healthy although %d of %d have owners", free, owners, inst.Capacity)
	}
}

func (c *checker) slot(inst *InstanceState, s *SlotState) {
	where := Ref{inst.Name, s.Slot}.String()
	own := v0.Owner{Node: c.Node}
	switch {
	case s.Healthy && !s.Owner.Free() && s.Owner != own:
		c.report("I1", where, "healthy although %q owns it", s.Owner)
	case s.Healthy && !inst.Published:
		c.report("I6", where, "healthy although the device is gone")
	case s.Healthy && s.Slot >= inst.Capacity:
		c.report("I3", where, "healthy beyond the capacity of %d", inst.Capacity)
	}
	if !s.Held.Free() && s.Owner.Free() && inst.Recorded && s.Patch == "settled" {
		c.report("I2", where, "free although a container may have it")
	}
	usable := inst.Published && inst.Online && inst.Recorded && !inst.Left && !inst.Suspended && s.Slot < inst.Capacity
	if usable && s.Owner == own && s.State != "conflicting" && s.State != "doubtful" && !s.Healthy {
		c.report("I4", where, "unhealthy although this node owns it")
	}
	if s.Healthy && !s.Listed {
		c.report("I6", where, "healthy although it is not listed")
	}
}

func (c *checker) group(g *GroupState) {
	fresh := 0
	for _, id := range g.IDs {
		if id.Healthy && len(id.Slots) == 0 {
			fresh++
		}
	}
	if fresh > len(g.Offering) {
		c.report("I5", g.Name, "%d unused IDs are healthy, but only %d Instances have a slot", fresh, len(g.Offering))
	}
}

func (c *checker) call(call *CallState) {
	var instances []string
	for _, ref := range call.Targets {
		if call.Resource.Group && slices.Contains(instances, ref.Instance) {
			c.report("I5", ref.String(), "call %d of %s gets two slots of the Instance", call.Call, call.Resource.Name)
		}
		instances = append(instances, ref.Instance)
	}
}
