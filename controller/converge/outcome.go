package converge

import (
	"time"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/problem"
)

// FirstRetry is the delay before the next pass when an object changed between the
// plan and the request.
const FirstRetry = 200 * time.Millisecond

// Outcome is the result of a pass. The table in the package comment says when each
// flag is set and how the reconcilers act on it.
type Outcome struct {
	// Resources is the new inventory.
	Resources []v0.ResourceStatus
	// Problems are in the order of the templates within each part of the pass.
	Problems []*problem.Error
	// Held reports that the rollout gate holds a change.
	Held bool
	// Uncreated is the number of held objects that do not exist yet, and that are not among
	// the Resources.
	Uncreated int
	// Pending reports that there is nothing to report yet: the watch of some kind
	// has not synced, or an object changed under the plan.
	Pending bool
	// RequeueAfter is the delay before the next pass if no event comes first; 0 is
	// none.
	RequeueAfter time.Duration
}

// fail records an error at a place in the Configuration as a problem.
func (o *Outcome) fail(place string, err error) {
	o.Problems = append(o.Problems, problem.At(place, err))
}

// Requeue requests another pass after a delay at the latest.
func (o *Outcome) Requeue(after time.Duration) {
	if o.RequeueAfter == 0 || after < o.RequeueAfter {
		o.RequeueAfter = after
	}
}
