package slots

import "fmt"

// The invariants that one node's view can be checked against. Those that speak of
// several nodes, or of containers, are checked by the random schedules of
// model_test.go:
//
//	I1  a slot has one owner, which changes only by way of free
//	I2  no slot of a live container is ever free
//	I3  the healthy slots of a list are within the capacity
//	I4  a request of the node that owns the slot never fails for ownership
//	I6  no id leaves the list within [Quiet] of a call naming it
//	I7  a slot without container becomes free when the API server answers
//	I8  each call is answered exactly once
//	I9  a restart of the agent changes no owner of a running pod
//
// I5 (distinct Instances within one container) is about the Configuration's
// resource, which this package does not serve yet.

// Violation is an invariant that does not hold.
type Violation struct {
	Invariant string
	Slot      Ref
	What      string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s %s: %s", v.Invariant, v.Slot, v.What)
}

// Check returns what is wrong in a state.
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
				report("I1", "offered although %q has it", s.Owner)
			}
			if s.Healthy && !inst.Published {
				report("I6", "healthy although the device went")
			}
			if s.Granted && s.Owner.Free() && inst.Recorded && s.Phase == settled.String() {
				report("I2", "free although a container may have it")
			}
		}
	}
	return found
}
