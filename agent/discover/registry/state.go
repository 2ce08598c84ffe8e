package registry

import "time"

// ForgetAfter is how long an endpoint may be offline before it is forgotten.
const ForgetAfter = 5 * time.Minute

// State is the state of an endpoint.
type State string

// The states of an endpoint.
const (
	Waiting State = "Waiting" // registered; no Configuration uses it
	Active  State = "Active"  // at least one stream is open
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

// registered records a registration.
func (r *record) registered(shared bool) {
	r.shared = shared
	r.offlineSince = time.Time{}
}

// opened records that a stream is open.
func (r *record) opened() {
	r.streams++
	r.offlineSince = time.Time{}
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
	if r.streams == 0 && r.offlineSince.IsZero() {
		r.offlineSince = now
	}
}

// forgetAt returns the time when the endpoint is forgotten, and whether it is
// offline.
func (r *record) forgetAt() (time.Time, bool) {
	if r.state() != Offline {
		return time.Time{}, false
	}
	return r.offlineSince.Add(ForgetAfter), true
}
