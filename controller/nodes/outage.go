package nodes

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/internal/backoff"
	"akri.sh/akri/internal/deadline"
)

// maxOutage limits how long a deleted node is remembered, and the back-off for an
// agent that adds its node again.
const maxOutage = 24 * time.Hour

// outage is the time during which a node is not Ready. It starts when this
// controller first observes it, because the clocks of small machines cannot be
// trusted. A restart of the controller starts it again.
type outage struct {
	status
	since    time.Time
	attempts map[types.UID]attempt // to remove the node from an Instance, or its failures from a Configuration
}

// attempt says when to try again, and how often the node has been removed.
type attempt struct {
	next     time.Time
	removals int
}

// due returns when to remove the node from an object.
func (o *outage) due(object types.UID, options Options) time.Time {
	grace := options.NotReadyGrace
	if o.state == Gone {
		grace = options.GoneGrace
	}
	return deadline.Latest(o.since.Add(grace), o.attempts[object].next)
}

// record records an attempt. An object that is in use is looked at again after another
// grace period, because Pods are not watched. If the agent adds the node again after a
// removal, it is alive although its kubelet is not: the next removal is delayed, not
// cancelled, because the agent may still die.
func (o *outage) record(object types.UID, removed bool, now time.Time, options Options) {
	next := attempt{now.Add(options.NotReadyGrace), o.attempts[object].removals}
	if removed {
		next.removals++
		next.next = now.Add(backoff.Delay(options.NotReadyGrace, maxOutage, next.removals))
	}
	o.attempts[object] = next
}

// outages holds the outages of all nodes. It is not safe for concurrent use.
type outages map[string]*outage

// observe returns the outage of a node with a status, or nil if the node is Ready.
func (all outages) observe(node string, now status, at time.Time) *outage {
	current := all[node]
	switch {
	case now.state == Ready:
		delete(all, node)
		return nil
	case current == nil || current.status != now:
		all.forget(at)
		next := &outage{status: now, since: at, attempts: map[types.UID]attempt{}}
		if current != nil { // what was removed and added again is still backed off from
			for object, known := range current.attempts {
				next.attempts[object] = attempt{removals: known.removals}
			}
		}
		current, all[node] = next, next
	}
	return current
}

// forget removes nodes that were deleted long ago, because node names need not
// repeat.
func (all outages) forget(now time.Time) {
	for name, old := range all {
		if old.state == Gone && now.Sub(old.since) > 2*maxOutage {
			delete(all, name)
		}
	}
}
