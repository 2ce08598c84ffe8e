package informers

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

var (
	// errSilent replaces the error of a request that was not answered in time.
	errSilent = errors.New("the API server does not answer; check whether it, or a proxy in front of it, is overloaded")
	// errTooShort is that of a watch that did not last.
	errTooShort = errors.New("the API server ends each watch as soon as it begins; check its log")
)

// timing holds the durations that decide how soon a watch that does not work is
// noticed: less than a minute in each case.
type timing struct {
	// request is how long a watch lasts, plus up to a third of it, so that watches do not
	// end together. A new one notices a permission that was revoked. No event is lost
	// between two.
	request time.Duration
	// list is how long a list may take, also if it arrives as a watch, and pause is how long
	// nothing of it may arrive.
	list, pause time.Duration
	// delayedEnd is how late the API server may end a watch.
	delayedEnd time.Duration
	// steady is how long a watch must have been open to count as working.
	steady time.Duration
	// interruption is how long lists and watches may fail without a report: the single
	// API server of an edge cluster may be restarting.
	interruption time.Duration
	// refusal is the same for a definite answer: the controller may not watch the
	// resource, or there is none. An API server that is starting gives it for a few
	// seconds.
	refusal time.Duration
	// check is how often failures are looked for.
	check time.Duration
	// minDelay and maxDelay bound the delay between attempts to list and watch.
	minDelay, maxDelay time.Duration
}

func defaultTiming() timing {
	return timing{
		request:      27 * time.Second,
		list:         10 * time.Minute,
		pause:        time.Minute,
		delayedEnd:   8 * time.Second,
		steady:       5 * time.Second,
		interruption: 30 * time.Second,
		refusal:      10 * time.Second,
		check:        2 * time.Second,
		minDelay:     800 * time.Millisecond,
		maxDelay:     5 * time.Second,
	}
}

// health decides whether a watch works. It has no clock.
type health struct {
	timing   timing
	opened   time.Time // when the open watch began; zero if none is open
	failing  time.Time // since when lists and watches fail; zero if they work
	err      error     // the latest error while failing
	synced   bool      // the first list is complete
	reported bool      // the failure has been reported
}

// open records that the API server has accepted a watch.
func (h *health) open(now time.Time) { h.opened = now }

// end records the end of the open watch.
func (h *health) end(now time.Time) {
	switch {
	case h.opened.IsZero():
	case now.Sub(h.opened) >= h.timing.steady:
		h.work()
	default:
		h.fail(now, errTooShort)
	}
	h.abandon()
}

// abandon records that the controller ends the open watch, which says nothing about it.
func (h *health) abandon() { h.opened = time.Time{} }

// fail records an error of a list or of a watch.
func (h *health) fail(now time.Time, err error) {
	if h.failing.IsZero() {
		h.failing = now
	}
	h.err = err
	h.abandon()
}

// silence records that the API server has neither sent nor ended the open watch in time.
func (h *health) silence() { h.fail(h.opened, errSilent) }

// work records that the watch works.
func (h *health) work() { h.failing, h.err = time.Time{}, nil }

// healthChange is what [health.report] has found.
type healthChange int

const (
	unchanged healthChange = iota
	failed
	recovered
)

// report reports a failure that has lasted too long, and the end of a reported one,
// once each.
func (h *health) report(now time.Time) healthChange {
	if !h.opened.IsZero() && now.Sub(h.opened) >= h.timing.steady && !errors.Is(h.err, errSilent) {
		h.work() // one that was silent has to end in time first
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
