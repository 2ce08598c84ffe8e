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

// departures remembers the Instances that no node sees any more, but whose slots
// containers have. The agents keep such an Instance as the record of its slots, and delete
// it when the last one is free. Its objects are deleted before, because their containers
// may be what has the slots.
type departures struct {
	mu sync.Mutex
	// absent has the Instances without nodes, and those that have been observed.
	absent map[types.UID]absence
}

// absence is the time in which no node sees a device; empty if a node sees it.
type absence struct {
	since time.Time
	// uncertain reports that it may have begun before.
	uncertain bool
}

// observe returns whether the device of an Instance is present, and after which time to
// look again; zero for not before the next event. It remembers which Instances had nodes.
func (d *departures) observe(instance *v0.Instance, now time.Time) (state presence, again time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(instance.Spec.Nodes) > 0 {
		d.set(instance.UID, absence{})
	}
	return d.judge(instance, now)
}

// judge is observe without the memory of Instances with nodes. The caller holds the lock.
func (d *departures) judge(instance *v0.Instance, now time.Time) (state presence, again time.Duration) {
	known, found := d.absent[instance.UID]
	switch {
	case instance.DeletionTimestamp != nil:
		delete(d.absent, instance.UID)
		return present, 0
	case len(instance.Spec.Nodes) > 0:
		if found {
			d.set(instance.UID, absence{})
		}
		return present, 0
	case !known.since.IsZero() && now.Sub(known.since) >= departureDelay:
		return departed, 0 // also when the slots are free: an agent deletes it soon
	case !known.uncertain && !v0.Held(instance):
		if found {
			d.set(instance.UID, absence{})
		}
		return present, 0 // its last node is lost, and another one may find the device
	case known.since.IsZero():
		known = absence{since: now, uncertain: !found}
		d.set(instance.UID, known)
	}
	if known.uncertain {
		state = uncertain
	}
	return state, departureDelay - now.Sub(known.since)
}

// set records the absence of a device. The caller holds the lock.
func (d *departures) set(instance types.UID, known absence) {
	if d.absent == nil {
		d.absent = map[types.UID]absence{}
	}
	d.absent[instance] = known
}

// remaining returns the Instances whose devices have not departed, whether all of them
// are known to be present, and after which time to look again.
func (d *departures) remaining(instances []v0.Instance, now time.Time) (rest []v0.Instance, certain bool, again time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	rest, certain = instances[:0], true
	for i := range instances {
		state, soon := d.judge(&instances[i], now)
		again = sooner(again, soon)
		certain = certain && state != uncertain
		if state != departed {
			rest = append(rest, instances[i])
		}
	}
	return rest, certain, again
}

func (d *departures) forget(instance types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.absent, instance)
}

// sooner returns the shorter of two delays, where zero is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
