package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/templating"
)

// Action is what a step does.
type Action int

const (
	// Keep leaves the object alone: it is as rendered.
	Keep Action = iota
	// Create applies an object that does not exist. It fails if the object exists.
	Create
	// Update applies over an object of the parent.
	Update
	// Recreate deletes an object of the parent; the next plan creates it again.
	Recreate
	// Wait leaves the object alone while it is being deleted.
	Wait
	// Conflict leaves the object alone: it belongs to another owner.
	Conflict
	// Skip leaves the object alone: it belongs to another owner, and the template
	// accepts that.
	Skip
	// Delete deletes an object of the parent that is no longer desired.
	Delete
	// Release removes an object that is no longer desired from the inventory only.
	Release
	// Hold leaves the object unchanged for now: the rollout gate holds the change.
	Hold
)

func (a Action) String() string {
	return [...]string{"keep", "create", "update", "recreate", "wait", "conflict", "skip", "delete", "release", "hold"}[a]
}

// Desired is one rendered object.
type Desired struct {
	Ref inventory.Ref
	// Kind and Resource identify the kind as the API server serves it.
	Kind     schema.GroupVersionKind
	Resource schema.GroupVersionResource
	// Place is the path of the object's template in the Configuration; empty if that is
	// not known.
	Place string
	// Template is the index of the template in its list.
	Template int32
	// Hash is that of Content.
	Hash string
	// Content is the whole object, owner reference and labels included.
	Content map[string]any
	// Directives are those of its template.
	templating.Directives
}

// Recreates reports whether to delete the object and to create it again if a field that
// differs is immutable.
func (d *Desired) Recreates() bool { return d.OnImmutable == templating.ImmutableRecreate }

// Orphans reports whether to release the object when it is no longer desired. It has no
// owner, so garbage collection does not remove it.
func (d *Desired) Orphans() bool { return d.DeletionPolicy == templating.DeletionOrphan }

// Observed is what planning needs to know about an object in the API server.
type Observed struct {
	ownership.State
	// ManagedFieldsHash is that of the set of fields that the controller owns; empty if
	// it has not applied the object.
	ManagedFieldsHash string
	// Edited reports that somebody has set list entries with kubectl.
	Edited bool
	// Terminated: it is a Pod that never runs again; Reason says why.
	Terminated bool
	Reason     string
}

// Input is everything a plan depends on.
type Input struct {
	// Parent is the Configuration or the Instance.
	Parent ownership.Parent
	// Desired in the order of the templates.
	Desired []Desired
	// Observed are the objects that carry our labels and name this parent.
	Observed map[inventory.Ref]Observed
	// Recorded is the inventory: what was applied, and as what.
	Recorded []v0.ResourceStatus
	// Remembered reports whether this process has applied an object for the parent.
	// Nil remembers none.
	Remembered func(types.UID) bool
	// Complete is false if something could not be rendered or resolved: Desired may
	// then lack a desired object.
	Complete bool
	// ReplaceTerminated: replace terminated Pods now; otherwise leave them alone.
	ReplaceTerminated bool
}

// HasTerminatedPod reports whether a desired Pod has terminated and must be
// replaced.
func (in Input) HasTerminatedPod() bool {
	return slices.ContainsFunc(in.Desired, func(want Desired) bool {
		pod := in.Observed[want.Ref]
		return pod.Terminated && !pod.Terminating && !want.Once
	})
}

// Step is the action for one object.
type Step struct {
	Action Action
	Ref    inventory.Ref
	// Kind with the version to use.
	Kind schema.GroupVersionKind
	// UID of the existing object; empty for Create, and for Delete if it is unknown
	// whether the object exists.
	UID types.UID
	// Desired is nil if the object is not desired, or not known to be.
	Desired *Desired
	// Recorded is the entry in the inventory; it has no name if there is none.
	Recorded v0.ResourceStatus
	// Claim is the parent's claim to the object, and State what that says of its owner.
	Claim ownership.Claim
	State ownership.State
	// Reason says why, for a person; empty for Keep.
	Reason string
	// Change: the templates, or the values that they are rendered with, differ from
	// those applied before.
	Change bool
	// Repair: another client has changed or deleted what was applied.
	Repair bool
	// Disown: the object stays when its parent is deleted; its owner label is removed
	// before it is released.
	Disown bool
	// TakeOver: what kubectl has set in lists of the template becomes the controller's first,
	// so that the update removes what has replaced an entry of the template.
	TakeOver bool
}

// Entry returns the object's entry in the inventory, without what identifies the object
// that was applied.
func (s Step) Entry() v0.ResourceStatus {
	return v0.ResourceStatus{
		Group: s.Ref.Group, Version: s.Kind.Version, Kind: s.Ref.Kind, Namespace: s.Ref.Namespace, Name: s.Ref.Name,
		Template: s.Desired.Template, Orphan: s.Desired.Orphans(),
	}
}

// Changes reports whether a plan changes existing objects because of new templates
// or values.
func Changes(steps []Step) bool {
	return slices.ContainsFunc(steps, func(step Step) bool { return step.Change })
}

// Withhold makes the changes of a plan wait. Objects are still repaired, and a parent
// without objects gets its first.
func Withhold(steps []Step) {
	for i := range steps {
		if steps[i].Change {
			steps[i].Action, steps[i].Reason = Hold, ""
		}
	}
}

// Compute returns the plan: a step for each desired object in their order, then one for
// each other object of the parent, sorted.
func Compute(in Input) []Step {
	recorded := inventory.Index(in.Recorded)
	steps := make([]Step, 0, len(in.Desired))
	desired := make(map[inventory.Ref]bool, len(in.Desired))
	for i := range in.Desired {
		want := &in.Desired[i]
		if desired[want.Ref] {
			continue // Desire reports it
		}
		desired[want.Ref] = true
		observed, exists := in.Observed[want.Ref]
		steps = append(steps, decide(in, want, observed, exists, recorded[want.Ref]))
	}
	return append(steps, unwanted(in, desired, recorded)...)
}

// unwanted returns the steps for the objects that the parent applied or owns and
// that are not desired.
func unwanted(in Input, desired map[inventory.Ref]bool, recorded map[inventory.Ref]v0.ResourceStatus) []Step {
	var steps []Step
	const reason = "no template renders it any more"
	for ref, entry := range recorded {
		// An object that was announced and has no UID may exist. In the parent's
		// namespace garbage collection finds it; elsewhere this step does.
		if desired[ref] || entry.UID == "" && in.Parent.Collected(entry.Namespace) {
			continue
		}
		step := removal(in.Parent, entry, reason)
		if !in.Complete { // what Desired lacks may only have failed to render
			step.Action, step.Change = Keep, false
		}
		steps = append(steps, step)
	}
	for ref, observed := range in.Observed {
		// Elsewhere, only the inventory counts: every object is in it before it exists.
		known := desired[ref] || recorded[ref].UID != "" || !in.Parent.Collected(ref.Namespace)
		step := removal(in.Parent, v0.ResourceStatus{
			Group: ref.Group, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, UID: string(observed.UID),
		}, reason)
		if in.Complete && !known && observed.Applied && step.Claim.Deletes(observed.State) && !observed.Terminating {
			step.Recorded = recorded[ref]
			steps = append(steps, step)
		}
	}
	slices.SortFunc(steps, func(a, b Step) int { return a.Ref.Compare(b.Ref) })
	return steps
}

// removal returns the step that removes an object, given by its entry.
func removal(parent ownership.Parent, entry v0.ResourceStatus, reason string) Step {
	step := Step{
		Action: Delete, Ref: inventory.RefOf(entry), Kind: inventory.KindOf(entry), UID: types.UID(entry.UID),
		Recorded: entry, Claim: ownership.Claim{Parent: parent}, Reason: reason, Change: true,
	}
	if entry.Orphan {
		step.Action = Release
	}
	return step
}

// Unrecorded returns entries for the objects that a plan would create where garbage
// collection cannot remove them with their parent, and that the inventory lacks. They
// must be in it before the plan is carried out: otherwise a crash leaks them.
func Unrecorded(parent ownership.Parent, steps []Step) []v0.ResourceStatus {
	var entries []v0.ResourceStatus
	for _, step := range steps {
		known := step.Recorded.Name != ""
		if step.Action == Create && !step.Desired.Orphans() && !known && !parent.Collected(step.Ref.Namespace) {
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
