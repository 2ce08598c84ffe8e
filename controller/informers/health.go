package informers

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Reasons why a stream ended, in addition to the API server's errors.
var (
	// errAbandoned is a stream that the controller has ended. It says nothing about
	// the watch.
	errAbandoned = errors.New("the watch was stopped")
	// errSilent is a stream that the API server should have ended.
	errSilent = errors.New("the API server neither sends events nor ends the watch; check whether it, " +
		"or a proxy in front of it, is overloaded")
	errTooShort = errors.New("the API server ends each watch as soon as it begins; check its log")
)

// health decides whether a watch works, from what happens to its streams. It has no
// clock.
type health struct {
	timing    timing
	requested time.Time // when the latest stream was requested
	opened    time.Time // when the open stream began; zero if none is open
	heard     bool      // the open stream has delivered something
	failing   time.Time // since when lists and watches fail; zero if they work
	silent    bool      // the failure is errSilent: the next stream must deliver something
	err       error     // the latest error while failing
	synced    bool      // the first list is complete
	reported  bool      // the failure has been reported
}

func (h *health) request(now time.Time) { h.requested, h.heard = now, false }

func (h *health) open(now time.Time) { h.opened = now }

// fail records an error of a list or of the request for a stream.
func (h *health) fail(now time.Time, err error) {
	if h.failing.IsZero() {
		h.failing = now
	}
	h.err = err
}

// closed records the end of a stream; err is nil if the API server ended it in
// order.
func (h *health) closed(now time.Time, err error) {
	lasted := !h.opened.IsZero() && now.Sub(h.opened) >= h.timing.steady
	h.opened = time.Time{}
	switch {
	case errors.Is(err, errAbandoned):
	case errors.Is(err, errSilent):
		h.fail(h.requested, err)
		h.silent = true
	case err != nil:
		h.fail(now, err)
	case lasted:
		h.work()
	default:
		h.fail(now, errTooShort)
	}
}

// work records that the watch works.
func (h *health) work() { h.failing, h.silent, h.err = time.Time{}, false, nil }

// healthChange is what [health.check] has found.
type healthChange int

const (
	unchanged healthChange = iota
	failed
	recovered
)

// check reports a failure that has lasted too long, and the end of a reported one,
// once each.
func (h *health) check(now time.Time) healthChange {
	if !h.opened.IsZero() && now.Sub(h.opened) >= h.timing.steady && (h.heard || !h.silent) {
		h.work()
	}
	switch {
	case h.failing.IsZero() && h.reported:
		h.reported = false
		return recovered
	case !h.failing.IsZero() && !h.reported && now.Sub(h.failing) >= h.patience():
		h.reported = true
		return failed
	}
	return unchanged
}

// patience returns how long the present error is not reported. A resource that has
// never been watched is not interrupted: a definite answer counts at once.
func (h *health) patience() time.Duration {
	definite := apierrors.IsForbidden(h.err) || apierrors.IsNotFound(h.err) || apierrors.IsMethodNotSupported(h.err)
	switch {
	case definite && !h.synced:
		return 0
	case definite:
		return h.timing.refusal
	}
	return h.timing.interruption
}

// state returns what parents are told.
func (h *health) state() State {
	if h.reported {
		return State{Err: h.err}
	}
	return State{Synced: h.synced}
}
