package controller

import (
	"time"

	v0 "akri.sh/akri/api/v0"
)

// departureDelay is how long an Instance has no nodes before its objects are deleted
// although the Instance is kept. An edit that empties the list is reverted by the agents
// much earlier.
const departureDelay = 5 * time.Second

// presence is what is known about the device of an Instance.
type presence int

const (
	// present devices are seen by a node, or may be seen by one again.
	present presence = iota
	// uncertain devices had no nodes when this process first saw the Instance. They may have
	// departed long ago: nothing is created or deleted for them.
	uncertain
	// departed devices have had no nodes for departureDelay.
	departed
)

// absence is the time in which no node sees the device of an Instance, but containers have
// its slots. The agents keep such an Instance as the record of its slots, and delete it when
// the last one is free. Its objects are deleted before, because their containers may be what
// has the slots.
type absence struct {
	since    time.Time // zero if it has not begun
	hadNodes bool      // since this process has started
}

// observe returns whether the device is present, and after which time to look again; zero
// for not before the next event.
func (a *absence) observe(instance *v0.Instance, now time.Time) (state presence, again time.Duration) {
	switch {
	case len(instance.Spec.Nodes) > 0:
		*a = absence{hadNodes: true}
		return present, 0
	case !a.since.IsZero() && now.Sub(a.since) >= departureDelay:
		return departed, 0 // also when the slots are free: an agent deletes it soon
	case !v0.Held(instance) && (a.hadNodes || a.since.IsZero()):
		a.since = time.Time{}
		return present, 0 // its last node is lost, and another one may find the device
	case a.since.IsZero():
		a.since = now
	}
	if !a.hadNodes {
		state = uncertain
	}
	return state, departureDelay - now.Sub(a.since)
}
