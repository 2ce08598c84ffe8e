package slots

import "fmt"

// The invariants. Check verifies those that concern one node's view. The random
// schedules of model_test.go verify those that concern several nodes or containers:
//
//	I1  a slot has one owner, which changes only through free
//	I2  no slot of a live container is ever free
//	I3  the healthy slots of a list are within the capacity
//	I4  a request for a slot that the node owns is never refused as taken
//	I6  no id leaves the list within [Quiet] of a call naming it
//	I7  a slot without a container becomes free when the API server answers
//	I8  each call is answered exactly once
//	I9  a restart of the agent changes no owner of a running pod
//
// I5 (distinct Instances within one container) concerns the Configuration's resource,
// which this package does not serve yet.

// Violation is a violated invariant.
type Violation struct {
	Invariant string
	Slot      Ref
	What      string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s %s: %s", v.Invariant, v.Slot, v.What)
}

// Check returns the violations in a state.
func Check(state State) []Violation {
	var found []Violation
	for _, inst := range state.Instances {
		for _, s := range inst.Slots {
			report := func(invariant, format string, args ...any) {
				found = append(found, Violation{invariant, Ref{inst.Name, s.Slot}, fmt.Sprintf(format, args...)})
			}
			if s.Healthy && s.Slot >= inst.Capacity {
				report("I3", "healthy beyond the capacity of %d", inst.Capacity)
			}
			if s.Healthy && !s.Owner.Free() && (s.Owner.Node != state.Node || s.Owner.VirtualID != "") {
				report("I1", "healthy although %q owns it", s.Owner)
			}
			if s.Healthy && !inst.Published {
				report("I6", "healthy although the device is gone")
			}
			if s.Granted && s.Owner.Free() && inst.Recorded && s.Phase == settled.String() {
				report("I2", "free although a container may have it")
			}
		}
	}
	return found
}
