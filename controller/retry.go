package controller

import (
	"slices"
	"time"

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

// retry records the problems of a pass. It returns when the next pass is due, 0 if none of
// the problems may heal, and those of the problems that are reported. It is no rate limiter
// of the queue: a pass may have to be repeated earlier for another reason.
func (m *memory) retry(p *pass, problems []*problem.Error, now time.Time) (wait time.Duration, shown []*problem.Error) {
	unavailable := func(p *problem.Error) bool { return p.Unavailable }
	shown = problems
	m.update(p.parent, func(known *record) {
		failures := known.failures
		if !slices.ContainsFunc(problems, func(p *problem.Error) bool { return p.Retryable }) {
			known.failures, known.unanswered = 0, time.Time{}
			return
		}
		known.failures++
		failing := 0
		for _, other := range m.records {
			failing += min(other.failures, 1)
		}
		limit := min(max(minMaxRetry, time.Duration(failing)*retryInterval), maxRetry)
		if !slices.ContainsFunc(problems, unavailable) {
			known.unanswered = time.Time{}
		} else if limit = maxUnavailableRetry; known.unanswered.IsZero() {
			known.unanswered = now
		}
		if now.Sub(known.unanswered) < unavailableDelay {
			shown = slices.DeleteFunc(slices.Clone(problems), unavailable)
		}
		wait = backoff.Delay(converge.FirstRetry, limit, failures)
	})
	return wait, shown
}
