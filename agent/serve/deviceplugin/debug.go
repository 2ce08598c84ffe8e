package deviceplugin

import (
	"context"
	"fmt"
	"slices"

	"akri.sh/akri/agent/debug"
	"akri.sh/akri/agent/serve/slots"
	v0 "akri.sh/akri/api/v0"
)

// PodsSource returns where the server reads the Pods of its node; see [debug.Kubernetes].
func (s *Server) PodsSource() string { return s.observer.Source() }

// DebugSlots returns the state of the slots, and the invariants that do not hold. It
// returns an error if the loop does not respond before ctx is done.
func (s *Server) DebugSlots(ctx context.Context) (debug.Slots, error) {
	state, err := s.SlotsState(ctx)
	if err != nil {
		return debug.Slots{}, fmt.Errorf("read the state of the slots: %w", err)
	}
	return debugSlots(state), nil
}

func debugSlots(state slots.State) debug.Slots {
	all := debug.Slots{Waiting: len(state.Waiting)}
	for i := range state.Instances {
		instance := &state.Instances[i]
		all.AddInstance(debug.Instance{Name: instance.Name, State: flagsOf(instance)})
		for j := range instance.Slots {
			slot := &instance.Slots[j]
			shown := debug.Slot{
				Name: v0.SlotName(instance.Name, slot.Slot), State: stateOf(slot, instance.Suspended, state.Node),
				Owner: slot.Owner.String(), InUse: !slot.Held.Free(), Healthy: slot.Healthy,
			}
			if slot.Phase != "settled" {
				shown.Pending = slot.Phase
			}
			all.Add(shown)
		}
	}
	for _, group := range state.Groups {
		resource := debug.Resource{Name: v0.ResourceName(group.Name), Offered: len(group.Offering)}
		for _, id := range group.IDs {
			resource.IDs = append(resource.IDs, debug.ID{ID: id.ID, Slots: id.Slots, Healthy: id.Healthy})
		}
		all.Resources = append(all.Resources, resource)
	}
	for _, violation := range slots.Check(state) {
		all.Violations = append(all.Violations, debug.Violation{
			Invariant: violation.Invariant, Where: violation.Where, What: violation.What,
		})
	}
	return all
}

// flagsOf returns the state of an Instance in the words of [debug.Instance].
func flagsOf(instance *slots.InstanceState) (flags []string) {
	for _, flag := range []struct {
		name string
		set  bool
	}{
		{"unpublished", !instance.Published}, {"offline", instance.Published && !instance.Online}, {"unrecorded", !instance.Recorded},
		{"left", instance.Left}, {"suspended", instance.Suspended},
		{"restoring", slices.ContainsFunc(instance.Slots, func(s slots.SlotState) bool { return s.Restoring })},
	} {
		if flag.set {
			flags = append(flags, flag.name)
		}
	}
	return flags
}

// stateOf returns the state of a slot in the words of [debug.Slots]. Claims of a
// suspended Instance cannot be written.
func stateOf(slot *slots.SlotState, suspended bool, node string) string {
	switch {
	case slot.Conflicting:
		return "conflicting"
	case slot.Unrecorded && slot.Phase == "settled": // the claim has failed, and will be repeated
		return "unwritable"
	case slot.Owner.Free() && suspended:
		return "unwritable"
	case slot.Owner.Free():
		return "free"
	case slot.Owner.Node == node:
		return "held"
	}
	return "taken"
}
