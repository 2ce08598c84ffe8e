package registry

import "time"

// ForgetAfter is how long an endpoint may be offline before it is forgotten.
const ForgetAfter = 5 * time.Minute

// State is how an endpoint stands.
type State string

// The states of an endpoint.
const (
	Waiting State = "Waiting" // registered; no Configuration uses it
	Active  State = "Active"  // at least one stream is open
	Offline State = "Offline" // it was dialled, or a stream broke, and it is not back
)

// States are all of them.
var States = []State{Waiting, Active, Offline}

// record is what is known of an endpoint. Its methods are the transitions.
type record struct {
	shared  bool
	streams int
	// offlineSince is when the endpoint was found not to answer; zero if it is
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

// registered: the handler says that it is there.
func (r *record) registered(shared bool) {
	r.shared = shared
	r.offlineSince = time.Time{}
}

// opened: a stream stands.
func (r *record) opened() {
	r.streams++
	r.offlineSince = time.Time{}
}

// closed: we ended a stream ourselves, which says nothing of the handler.
func (r *record) closed() { r.streams-- }

// broke: a stream ended that we did not end.
func (r *record) broke(now time.Time) {
	r.streams--
	r.failed(now)
}

// failed: the endpoint did not answer.
func (r *record) failed(now time.Time) {
	if r.streams == 0 && r.offlineSince.IsZero() {
		r.offlineSince = now
	}
}

// forgetAt is when the endpoint is to be forgotten; false if it is not offline.
func (r *record) forgetAt() (time.Time, bool) {
	if r.state() != Offline {
		return time.Time{}, false
	}
	return r.offlineSince.Add(ForgetAfter), true
}
