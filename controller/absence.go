package controller

import (
	"time"

	v0 "akri.sh/akri/api/v0"
)

// departureDelay is how long an Instance has no nodes before its objects are deleted
// although the Instance is kept. An edit that empties the list is reverted by the agents
// much earlier.
const departureDelay = 5 * time.Second

// absence is the time in which no node sees the device of an Instance, but containers have
// its slots. The agents keep such an Instance as the record of its slots, and delete it when
// the last one is free. Its objects are deleted before, because their containers may be what
// has the slots.
type absence struct {
	since    time.Time // zero if it has not begun
	hadNodes bool      // since this process has started
}

// observe returns whether the device has departed, and after which time to look again; zero
// for not before the next event. A device without nodes when this process first sees the
// Instance may have departed long ago: nothing is created for it.
func (a *absence) observe(instance *v0.Instance, now time.Time) (departed bool, again time.Duration) {
	switch {
	case len(instance.Spec.Nodes) > 0:
		*a = absence{hadNodes: true}
		return false, 0
	case !a.since.IsZero() && now.Sub(a.since) >= departureDelay:
		return true, 0 // also when the slots are free: an agent deletes it soon
	case !v0.Held(instance):
		a.since = time.Time{}
		return false, 0 // its last node is lost, and another one may find the device
	case !a.hadNodes:
		a.since = now.Add(-departureDelay)
		return true, 0
	case a.since.IsZero():
		a.since = now
	}
	return false, departureDelay - now.Sub(a.since)
}
