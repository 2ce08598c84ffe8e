package plan

import (
	"slices"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/ownership"
)

// Unrecorded returns entries for the objects that a plan would create where garbage
// collection cannot remove them with their parent, and that the inventory lacks. They
// must be in it before the plan is carried out: otherwise a crash leaks them.
func Unrecorded(parent ownership.Parent, steps []Step) []v0.ResourceStatus {
	var entries []v0.ResourceStatus
	for _, step := range steps {
		known := step.Recorded.Name != ""
		if step.Action == Create && !step.Desired.Orphan && !known && !parent.Collected(step.Ref.Namespace) {
			entry := step.Entry()
			entry.Reason = "about to be created"
			entries = append(entries, entry)
		}
	}
	return entries
}

// Teardown returns the plan for a parent that is being deleted: it deletes what garbage
// collection cannot. If the parent is deleted without its objects, it disowns them, as
// garbage collection does with those that it can delete.
func Teardown(parent ownership.Parent, recorded []v0.ResourceStatus, orphans bool) []Step {
	steps := make([]Step, 0, len(recorded))
	for _, entry := range recorded {
		step := removal(parent, entry, "its parent is being deleted")
		switch {
		case parent.Collected(entry.Namespace):
			step.Action = Keep
		case orphans && !entry.Orphan:
			step.Action, step.Disown, step.Reason = Release, true, "its parent is being deleted without its objects"
		}
		steps = append(steps, step)
	}
	return steps
}

// NeedsFinalizer reports whether an inventory has an object that garbage collection
// cannot remove with the parent.
func NeedsFinalizer(parent ownership.Parent, recorded []v0.ResourceStatus) bool {
	return slices.ContainsFunc(recorded, func(entry v0.ResourceStatus) bool {
		return !entry.Orphan && !parent.Collected(entry.Namespace)
	})
}
