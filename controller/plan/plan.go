package plan

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/templating"
	"akri.sh/akri/templating/readywhen"
)

// Action is what a step does.
type Action int

const (
	// Keep leaves the object alone: it is as rendered.
	Keep Action = iota
	// Create applies an object that does not exist. It fails if one does.
	Create
	// Update applies over an object of ours.
	Update
	// Recreate deletes an object of ours; the next plan makes it anew.
	Recreate
	// Wait leaves the object alone until it has gone: it is being deleted.
	Wait
	// Conflict leaves the object alone: it is somebody else's.
	Conflict
	// Skip leaves the object alone: it is somebody else's, and the template says
	// that this is well.
	Skip
	// Delete removes an object of ours that is no longer wanted.
	Delete
	// Release leaves an object of ours, no longer wanted, to itself.
	Release
	// Hold leaves the object as it is for now: the change has to wait.
	Hold
)

func (a Action) String() string {
	return [...]string{"keep", "create", "update", "recreate", "wait", "conflict", "skip", "delete", "release", "hold"}[a]
}

// Desired is one rendered object.
type Desired struct {
	Ref inventory.Ref
	// Kind, Resource and Namespaced identify the kind as the API server serves it.
	Kind       schema.GroupVersionKind
	Resource   schema.GroupVersionResource
	Namespaced bool
	// Origin is where the object was rendered, as the Configuration's author names
	// it; empty if that is not known.
	Origin string
	// Template is the index of the template in its list.
	Template int32
	// Intent is a digest of Content.
	Intent string
	// Content is the whole object, owner reference and labels included.
	Content map[string]any
	// Recreate: delete the object and make it anew when a field that differs
	// cannot be changed.
	Recreate bool
	// Once: do not make the object again when it has gone by itself.
	Once bool
	// Orphan: leave the object alone when it is no longer wanted. It has no owner
	// then, since garbage collection would remove it.
	Orphan bool
	// ReadyWhen judges the object; nil: the kind's standard does.
	ReadyWhen *readywhen.Condition
	// OnConflict is what to do if the object exists and is somebody else's.
	OnConflict templating.OnConflict
}

// Observed is what planning needs to know of an object in the API server.
type Observed struct {
	UID types.UID
	// Owner, Parent and Terminating are as in [ownership.State].
	Owner       types.UID
	Parent      ownership.Parent
	Terminating bool
	// Fields is a digest of the set of fields that the controller owns; empty if it
	// has not applied the object.
	Fields string
	// Ended: it is a Pod that will not run again; Reason says why.
	Ended  bool
	Reason string
}

// state returns what an object says about its owner.
func (o Observed) state() ownership.State {
	return ownership.State{UID: o.UID, Owner: o.Owner, Parent: o.Parent, Applied: o.Fields != "", Terminating: o.Terminating}
}

// Input is everything a plan depends on.
type Input struct {
	// Parent is the Configuration or the Instance.
	Parent ownership.Parent
	// Desired in the order of the templates.
	Desired []Desired
	// Observed are the objects that carry our labels and name this parent.
	Observed map[inventory.Ref]Observed
	// Recorded is the inventory: what we applied, and as what.
	Recorded []v0.ResourceStatus
	// Complete is false when something could not be rendered or applied, so
	// that Desired may lack an object that is wanted.
	Complete bool
	// ReplaceEnded: Pods that have ended are replaced now; they are left alone
	// otherwise.
	ReplaceEnded bool
	// Hold: what the templates ask for anew has to wait. What is broken is still
	// mended, and a parent without objects gets its first.
	Hold bool
}

// Step is what to do about one object.
type Step struct {
	Action Action
	Ref    inventory.Ref
	// Kind with the version to use.
	Kind schema.GroupVersionKind
	// UID of the object that is there; empty for Create, and for Delete if it is
	// not known whether there is one.
	UID types.UID
	// Desired is nil for Delete and Release.
	Desired *Desired
	// Claim is the parent's claim to the object.
	Claim ownership.Claim
	// Reason says why, for people; empty for Keep.
	Reason string
	// Change: the templates, or the values rendered with them, ask for something
	// else than what was applied before.
	Change bool
	// Repair: somebody has changed or removed what was applied.
	Repair bool
}

// Changes tells whether a plan brings something new to what exists already.
func Changes(steps []Step) bool {
	return slices.ContainsFunc(steps, func(step Step) bool { return step.Change })
}

// Compute is the plan: a step for each desired object in their order, then the
// deletions, sorted.
func Compute(in Input) []Step {
	recorded := inventory.Index(in.Recorded)
	steps := make([]Step, 0, len(in.Desired))
	desired := make(map[inventory.Ref]bool, len(in.Desired))
	for i := range in.Desired {
		want := &in.Desired[i]
		if desired[want.Ref] {
			continue // two templates of one identity; the caller reports it
		}
		desired[want.Ref] = true
		observed, exists := in.Observed[want.Ref]
		steps = append(steps, decide(in, want, observed, exists, recorded[want.Ref]))
	}
	if !in.Complete || in.Hold {
		return steps // what is missing from Desired may only have failed to render
	}
	return append(steps, unwanted(in, desired, recorded)...)
}

// unwanted deletes what we applied, or what names this parent as its owner, and
// is desired no longer.
func unwanted(in Input, desired map[inventory.Ref]bool, recorded map[inventory.Ref]v0.ResourceStatus) []Step {
	var steps []Step
	claim := ownership.Claim{Parent: in.Parent}
	remove := func(action Action, ref inventory.Ref, version string, uid types.UID) {
		steps = append(steps, Step{
			Action: action,
			Ref:    ref,
			Kind:   schema.GroupVersionKind{Group: ref.Group, Version: version, Kind: ref.Kind},
			UID:    uid,
			Claim:  claim,
			Reason: "no template asks for it any more",
			Change: true,
		})
	}
	for ref, entry := range recorded {
		action := Delete
		if entry.Orphan {
			action = Release
		}
		// What was announced and has no UID may have been made all the same.
		// Garbage collection finds it in our namespace, we look elsewhere.
		if !desired[ref] && (entry.UID != "" || in.Parent.Elsewhere(entry.Namespace)) {
			remove(action, ref, entry.Version, types.UID(entry.UID))
		}
	}
	for ref, observed := range in.Observed {
		known := recorded[ref].UID != ""
		if !desired[ref] && !known && claim.Owns(observed.state()) && !observed.Terminating {
			remove(Delete, ref, "", observed.UID)
		}
	}
	slices.SortFunc(steps, func(a, b Step) int {
		return cmp.Or(cmp.Compare(a.Ref.Group, b.Ref.Group), cmp.Compare(a.Ref.Kind, b.Ref.Kind),
			cmp.Compare(a.Ref.Namespace, b.Ref.Namespace), cmp.Compare(a.Ref.Name, b.Ref.Name))
	})
	return steps
}
