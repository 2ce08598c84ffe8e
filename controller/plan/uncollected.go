package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/ownership"
)

// Unrecorded returns entries for the objects that a plan would create where garbage
// collection cannot remove them with their parent, and that the inventory lacks. They
// must be in it before the plan is carried out: otherwise a crash leaks them.
func Unrecorded(in Input, steps []Step) []v0.ResourceStatus {
	recorded := inventory.Index(in.Recorded)
	var entries []v0.ResourceStatus
	for _, step := range steps {
		if step.Action != Create || step.Desired.Orphan || in.Parent.Collected(step.Ref.Namespace) {
			continue
		}
		if _, known := recorded[step.Ref]; known {
			continue
		}
		entries = append(entries, v0.ResourceStatus{
			Group: step.Ref.Group, Version: step.Desired.Kind.Version, Kind: step.Ref.Kind,
			Namespace: step.Ref.Namespace, Name: step.Ref.Name, Template: step.Desired.Template,
			Reason: "about to be created",
		})
	}
	return entries
}

// Teardown returns the plan for a parent that is being deleted: it deletes what garbage
// collection cannot. If the parent is deleted without its objects, it disowns them, as
// garbage collection does with those that it can delete.
func Teardown(parent ownership.Parent, recorded []v0.ResourceStatus, orphans bool) []Step {
	var steps []Step
	for _, entry := range recorded {
		if parent.Collected(entry.Namespace) {
			continue
		}
		step := Step{
			Action: Delete,
			Ref:    inventory.RefOf(entry),
			Kind:   inventory.KindOf(entry),
			UID:    types.UID(entry.UID),
			Claim:  ownership.Claim{Parent: parent},
			Reason: "its parent is being deleted",
		}
		switch {
		case entry.Orphan:
			step.Action = Release
		case orphans:
			step.Action, step.Disown, step.Reason = Release, true, "its parent is being deleted without its objects"
		}
		steps = append(steps, step)
	}
	return steps
}

// NeedsFinalizer reports whether an inventory has an object that garbage collection
// cannot remove with the parent.
func NeedsFinalizer(parent ownership.Parent, recorded []v0.ResourceStatus) bool {
	return slices.ContainsFunc(Teardown(parent, recorded, false), func(step Step) bool { return step.Action == Delete })
}
