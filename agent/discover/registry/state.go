package registry

import "time"

// ForgetAfter is how long an endpoint may be offline before it is forgotten.
const ForgetAfter = 5 * time.Minute

// retrying is the time after a failure in which a stream is certainly tried again, if
// one is needed.
const retrying = 30 * time.Second

// State is the state of an endpoint.
type State string

// The states of an endpoint.
const (
	Waiting State = "Waiting" // registered; no Configuration uses it
	Active  State = "Active"  // at least one stream is open, or is repeated and answered each time
	Offline State = "Offline" // it does not answer, or its stream broke
)

// States are all states.
var States = []State{Waiting, Active, Offline}

// record is the state machine of an endpoint.
type record struct {
	shared  bool
	streams int
	// offlineSince is the time when the endpoint first did not answer; zero if it is
	// not known to be offline.
	offlineSince time.Time
	// failedAt is the time of the last failure of a stream.
	failedAt time.Time
	// probed means that a probe found the endpoint offline, so a probe may find it
	// back. A stream that failed says more than a probe.
	probed bool
	// static means that the operator has configured the endpoint: it is never forgotten.
	static bool
}

func (r *record) state() State {
	switch {
	case r.streams > 0:
		return Active
	case !r.offlineSince.IsZero():
		return Offline
	}
	return Waiting
}

// registered records a registration. While a stream fails again and again, that the
// handler registers does not mean that it works; it is only not forgotten yet.
func (r *record) registered(shared bool, now time.Time) {
	r.shared = shared
	if r.state() == Offline && !r.failedAt.IsZero() && now.Sub(r.failedAt) < retrying {
		r.offlineSince = now
		return
	}
	r.available()
}

// opened records that a stream is open.
func (r *record) opened() {
	r.streams++
	r.available()
}

// closed records that the agent closed a stream, which says nothing about the
// handler.
func (r *record) closed() { r.streams-- }

// broke records that a stream ended without the agent closing it.
func (r *record) broke(now time.Time) {
	r.streams--
	r.failed(now)
}

// failed records that the endpoint did not answer.
func (r *record) failed(now time.Time) {
	r.offline(now)
	r.probed, r.failedAt = false, now
}

// unreachable records that a probe could not connect to the endpoint.
func (r *record) unreachable(now time.Time) {
	if r.state() == Waiting {
		r.offline(now)
		r.probed = true
	}
}

// reachable records that a probe could connect to the endpoint.
func (r *record) reachable(now time.Time) {
	if r.probed || r.static && now.Sub(r.failedAt) >= retrying {
		r.available()
	}
}

func (r *record) offline(now time.Time) {
	if r.streams == 0 && r.offlineSince.IsZero() {
		r.offlineSince = now
	}
}

func (r *record) available() { r.offlineSince, r.probed = time.Time{}, false }

// idle reports whether no stream is open or being retried, so that only a probe finds
// out whether the endpoint still exists. A static endpoint that is offline is probed, too:
// it never registers again.
func (r *record) idle() bool {
	return r.state() == Waiting || r.probed || r.static && r.streams == 0
}

// forgotten reports whether the endpoint has been offline for too long.
func (r *record) forgotten(now time.Time) bool {
	return !r.static && r.state() == Offline && now.Sub(r.offlineSince) >= ForgetAfter
}
