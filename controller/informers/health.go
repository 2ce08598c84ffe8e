package informers

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// errSilent replaces the error of a request that was not answered in time.
var errSilent = errors.New("the API server does not answer; check whether it, or a proxy in front of it, is overloaded")

// pace is how long a watch lasts, plus up to a third of it, and how long lists and watches may
// fail without a report: the single API server of an edge cluster may be restarting. Half a
// minute, so that a watch that does not work is reported within about a minute. All other
// durations are parts or multiples of it.
const pace = 30 * time.Second

// health decides whether a watch works.
type health struct {
	pace    time.Duration
	synced  bool      // the first list is complete
	failing time.Time // since when requests fail; zero if they do not
	err     error     // the latest error, once they have failed for too long
}

// fails returns the health after a request that has begun at a time and failed now.
func (h health) fails(began, now time.Time, err error) health {
	if h.failing.IsZero() {
		h.failing = began
	}
	if h.err != nil || now.Sub(h.failing) >= h.patience(err) {
		h.err = err
	}
	return h
}

// works returns the health after a watch was opened.
func (h health) works() health {
	h.failing, h.err = time.Time{}, nil
	return h
}

// patience returns how long an error is not reported. A definite answer, that the controller
// may not watch the resource, or that there is none, is one that an API server that is starting
// gives for a few seconds only. A resource that has never been watched is not interrupted.
func (h health) patience(err error) time.Duration {
	definite := apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
	switch {
	case definite && !h.synced:
		return 0
	case definite:
		return h.pace / 3
	}
	return h.pace
}

// state returns what parents are told.
func (h health) state() State { return State{Synced: h.synced && h.err == nil, Err: h.err} }
