package plan

import (
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/templating"
)

// decide asks one question after the other; the first that is answered with yes
// decides.
func decide(in Input, want *Desired, have Observed, exists bool, recorded v0.ResourceStatus) Step {
	step := Step{
		Ref:     want.Ref,
		Kind:    want.Kind,
		UID:     have.UID,
		Desired: want,
		Claim: ownership.Claim{
			Parent:  in.Parent,
			Applied: types.UID(recorded.UID),
			Adopt:   adoption(want),
		},
	}
	state := have.state()
	foreign := exists && !step.Claim.Owns(state)
	switch {
	case !exists && finished(want, recorded):
		step.Action = Keep
	case !exists && recorded.UID != "":
		step.Action, step.Reason, step.Repair = Create, "it has gone", recorded.Intent == want.Intent
	case !exists && len(in.Recorded) > 0 && in.Hold:
		step.Action, step.Change = Hold, true
	case !exists:
		step.Action, step.Reason, step.Change = Create, "it does not exist", len(in.Recorded) > 0
	case foreign && step.Claim.Judge(state) == ownership.Former:
		step.Action, step.Reason = Wait, "it is being deleted"
	case foreign && want.OnConflict == templating.ConflictSkip:
		step.Action, step.Reason = Skip, "it exists and belongs to somebody else"
	case foreign:
		step.Action, step.Reason = Conflict, "it exists and belongs to somebody else"
	case have.Terminating:
		step.Action, step.Reason = Wait, "it is being deleted"
	case have.Ended && !want.Once && in.ReplaceEnded:
		step.Action, step.Reason = Recreate, "it has ended: "+have.Reason
	case have.Ended:
		step.Action = Keep // applying over it would not make it run
	case edited(want, have, recorded) && in.Hold:
		step.Action, step.Change = Hold, true
	case edited(want, have, recorded):
		step.Action, step.Reason, step.Change = Update, "the template asks for something else", true
	case drifted(have, recorded):
		step.Action, step.Reason, step.Repair = Update, "somebody changed a field of ours", true
	default:
		step.Action = Keep
	}
	return step
}

// finished: it was made, is to be made once only, and has gone by itself.
func finished(want *Desired, recorded v0.ResourceStatus) bool {
	return want.Once && recorded.UID != "" && recorded.Intent == want.Intent
}

// adoption returns which unowned objects become the desired one.
func adoption(want *Desired) ownership.Adoption {
	switch {
	case want.OnConflict == templating.ConflictTake:
		return ownership.AdoptAny
	case want.Orphan: // it has no owner, so a lost record leaves only its fields
		return ownership.AdoptApplied
	}
	return ownership.AdoptNone
}

// edited: what was rendered is not what was applied last, or it is unknown what
// was.
func edited(want *Desired, have Observed, recorded v0.ResourceStatus) bool {
	return recorded.UID != string(have.UID) || recorded.Intent != want.Intent
}

// drifted: the set of fields that we own is not the one we had after our last
// apply. Whoever changes the value of one of our fields takes it out of the set.
func drifted(have Observed, recorded v0.ResourceStatus) bool {
	return have.Fields != recorded.Fields
}
