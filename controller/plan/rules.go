package plan

import (
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/templating"
)

// decide returns the step for a desired object. The first case that holds decides.
func decide(in Input, want *Desired, have Observed, exists bool, recorded v0.ResourceStatus) Step {
	step := Step{
		Ref:      want.Ref,
		Kind:     want.Kind,
		UID:      have.UID,
		Desired:  want,
		Recorded: recorded,
		State:    have.State,
		Claim: ownership.Claim{
			Parent:     in.Parent,
			Applied:    types.UID(recorded.UID),
			Remembered: recorded.UID != "" && in.Remembered != nil && in.Remembered(types.UID(recorded.UID)),
			Adopt:      adoption(want),
		},
	}
	foreign := exists && !step.Claim.Owns(have.State)
	switch {
	case !exists && finished(want, recorded):
		step.Action = Keep
	case !exists && recorded.UID != "":
		step.Action, step.Reason, step.Repair = Create, "it no longer exists", recorded.Hash == want.Hash
	case !exists && want.OnConflict == templating.ConflictSkip && recorded.Name != "":
		step.Action, step.Reason = Create, "its owner has deleted it"
	case !exists:
		step.Action, step.Reason, step.Change = Create, "it does not exist", len(in.Recorded) > 0
	case foreign && step.Claim.Judge(have.State) == ownership.Former:
		step.Action, step.Reason = Wait, "it is being deleted"
	case foreign && want.OnConflict == templating.ConflictSkip:
		step.Action, step.Reason = Skip, "it exists and belongs to another owner"
	case foreign:
		step.Action, step.Reason = Conflict, "it exists and belongs to another owner"
	case have.Terminating:
		step.Action, step.Reason = Wait, "it is being deleted"
	case have.Terminated && !want.Once && in.ReplaceTerminated:
		step.Action, step.Reason = Recreate, "it has terminated: "+have.Reason
	case have.Terminated:
		step.Action = Keep // applying over it would not make it run
	case edited(want, have, recorded):
		step.Action, step.Reason, step.Change = Update, "it differs from the rendered object", true
		step.TakeOver = takesOver(have, recorded)
	case drifted(have, recorded):
		step.Action, step.Reason, step.Repair = Update, "a field managed by Akri was changed", true
		step.TakeOver = takesOver(have, recorded)
	default:
		step.Action = Keep
	}
	return step
}

// finished reports whether an object that is applied only once was applied and no
// longer exists.
func finished(want *Desired, recorded v0.ResourceStatus) bool {
	return want.Once && recorded.UID != "" && recorded.Hash == want.Hash
}

// adoption returns which unowned objects become the desired one.
func adoption(want *Desired) ownership.Adoption {
	switch {
	case want.OnConflict == templating.ConflictAdopt:
		return ownership.AdoptAny
	case want.Orphans(): // it has no owner, so a lost record leaves only its fields
		return ownership.AdoptApplied
	}
	return ownership.AdoptNone
}

// edited reports whether the rendered object differs from the one applied last, or
// that one is unknown.
func edited(want *Desired, have Observed, recorded v0.ResourceStatus) bool {
	return recorded.UID != string(have.UID) || recorded.Hash != want.Hash
}

// drifted reports whether the set of fields that the controller owns differs from the one
// after its last apply. A manager that changes the value of such a field takes it out of
// the set.
func drifted(have Observed, recorded v0.ResourceStatus) bool {
	return have.ManagedFieldsHash != recorded.ManagedFieldsHash
}

// takesOver reports whether somebody may have replaced list entries of an object that was
// applied before.
func takesOver(have Observed, recorded v0.ResourceStatus) bool {
	return have.Edited && have.Applied && drifted(have, recorded)
}
