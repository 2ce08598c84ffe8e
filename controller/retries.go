package controller

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/controller/converge"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/internal/backoff"
)

const (
	// maxRetry is the longest back-off of a parent that could not be applied.
	maxRetry = 5 * time.Minute
	// minMaxRetry is the same for few parents. What refuses them, such as a quota, is not
	// watched, and once it no longer does, they must not wait.
	minMaxRetry = 5 * time.Second
	// retryInterval is that of the passes of many parents with the longest back-off.
	retryInterval = 200 * time.Millisecond
	// maxUnavailableRetry is the longest back-off while the API server does not answer:
	// it may answer again at any moment.
	maxUnavailableRetry = 10 * time.Second
	// unavailableDelay is how long the API server must not answer before a parent's
	// status says so. Until then, the requests are repeated silently.
	unavailableDelay = 30 * time.Second
)

// retries holds one entry for each parent with a problem that another attempt may
// solve.
type retries struct {
	mu       sync.Mutex
	byParent map[types.UID]*retry
}

// retry is the recent history of one parent.
type retry struct {
	failures    int
	unavailable time.Time // of the first pass without an answer since the last one with
}

func newRetries() *retries { return &retries{byParent: map[types.UID]*retry{}} }

// record records the problems of a pass. It returns when the next pass is due, 0 if
// none of the problems is retryable, and those of the problems that must be reported.
func (r *retries) record(parent types.UID, problems []*problem.Error, now time.Time) (time.Duration, []*problem.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.ContainsFunc(problems, func(p *problem.Error) bool { return p.Retryable }) {
		delete(r.byParent, parent)
		return 0, problems
	}
	entry := r.byParent[parent]
	if entry == nil {
		entry = &retry{}
		r.byParent[parent] = entry
	}
	limit := min(max(minMaxRetry, time.Duration(len(r.byParent))*retryInterval), maxRetry)
	unanswered := func(p *problem.Error) bool { return p.Unavailable }
	switch {
	case !slices.ContainsFunc(problems, unanswered):
		entry.unavailable = time.Time{}
	default:
		limit = maxUnavailableRetry
		if entry.unavailable.IsZero() {
			entry.unavailable = now
		}
		if now.Sub(entry.unavailable) < unavailableDelay {
			problems = slices.DeleteFunc(slices.Clone(problems), unanswered)
		}
	}
	wait := backoff.Delay(converge.FirstRetry, limit, entry.failures)
	entry.failures++
	return wait, problems
}

func (r *retries) forget(parent types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byParent, parent)
}

func (r *retries) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.byParent)
}
