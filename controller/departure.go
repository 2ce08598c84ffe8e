package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
)

// departureDelay is how long an Instance has no nodes before its objects are deleted
// although the Instance is kept. An edit that empties the list is reverted by the agents
// much earlier.
const departureDelay = 5 * time.Second

// departures remembers the Instances that no node sees any more, but whose slots
// containers have. The agents keep such an Instance as the record of its slots, and delete
// it when the last one is free. Its objects are deleted before, because their containers
// may be what has the slots.
type departures struct {
	mu    sync.Mutex
	since map[types.UID]time.Time
}

// observe reports whether the device of an Instance has departed, or after which time
// to look again; zero for not before the next event.
func (d *departures) observe(instance *v0.Instance, now time.Time) (departed bool, again time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	since, found := d.since[instance.UID]
	switch {
	case len(instance.Spec.Nodes) > 0 || instance.DeletionTimestamp != nil:
		delete(d.since, instance.UID)
	case found && now.Sub(since) >= departureDelay:
		return true, 0 // also when the slots are free: an agent deletes it soon
	case !v0.Held(instance):
		delete(d.since, instance.UID) // its last node is lost, and another one may find the device
	default:
		if !found {
			if d.since == nil {
				d.since = map[types.UID]time.Time{}
			}
			since, d.since[instance.UID] = now, now
		}
		return false, departureDelay - now.Sub(since)
	}
	return false, 0
}

// remaining returns the Instances whose devices have not departed, and after which time
// to look again.
func (d *departures) remaining(instances []v0.Instance, now time.Time) (rest []v0.Instance, again time.Duration) {
	rest = instances[:0]
	for i := range instances {
		departed, soon := d.observe(&instances[i], now)
		if again = sooner(again, soon); !departed {
			rest = append(rest, instances[i])
		}
	}
	return rest, again
}

func (d *departures) forget(instance types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.since, instance)
}

// sooner returns the shorter of two delays, where zero is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
