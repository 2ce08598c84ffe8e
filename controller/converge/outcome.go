package converge

import (
	"time"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/problem"
)

// FirstRetry is the delay before the next pass when an object changed between the
// plan and the request.
const FirstRetry = 200 * time.Millisecond

// Outcome is the result of a pass. The table in the package comment says what sets
// each flag and what follows from it.
type Outcome struct {
	// Resources is the new inventory.
	Resources []v0.ResourceStatus
	// Problems are in the order of the templates within each part of the pass.
	Problems []problem.Problem
	// Held reports that a change waits for its turn in a rollout.
	Held bool
	// Announce reports that Resources has to be written, with the finalizer on the
	// parent, before anything is applied. Nothing was.
	Announce bool
	// Pending reports that there is nothing to report yet: the watch of some kind
	// has not synced, or an object changed under the plan.
	Pending bool
	// RequeueAfter is when to look at the parent again without an event; 0 is never.
	RequeueAfter time.Duration
}

// fail adds the problem of an error at a place in the Configuration.
func (o *Outcome) fail(origin string, err error) {
	o.Problems = append(o.Problems, problem.Of(origin, err))
}

// Requeue requests another pass after a delay at the latest.
func (o *Outcome) Requeue(after time.Duration) {
	if o.RequeueAfter == 0 || after < o.RequeueAfter {
		o.RequeueAfter = after
	}
}
