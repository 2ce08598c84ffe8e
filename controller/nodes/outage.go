package nodes

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/internal/backoff"
	"akri.sh/akri/internal/deadline"
)

// maxOutage limits how long a deleted node is remembered, and the back-off for an
// agent that re-adds its node.
const maxOutage = 24 * time.Hour

// outage is the time during which a node is not Ready. It starts when this
// controller first observes it, because the clocks of small machines cannot be
// trusted. A restart of the controller starts it again.
type outage struct {
	state    State
	uid      types.UID
	since    time.Time                          // in this state
	lastUsed map[types.NamespacedName]time.Time // by Pods, which are not watched: they are listed again after another grace period
	removals removals                           // from Instances
	cleared  removals                           // from the failures of Configurations
}

// removals records when a node was last removed from objects, and how often.
type removals map[types.NamespacedName]removal

type removal struct {
	last  time.Time
	count int
}

func (r removals) record(object types.NamespacedName, now time.Time) {
	r[object] = removal{last: now, count: r[object].count + 1}
}

// postponed returns when to remove the node again, and due if it was not removed.
//
// If the agent re-added the node after a removal, the agent is alive although its
// kubelet is not. The next removal is delayed, not cancelled, because the agent may
// still die.
func (r removals) postponed(due time.Time, object types.NamespacedName, options Options) time.Time {
	if removed, found := r[object]; found {
		due = deadline.Latest(due, removed.last.Add(backoff.Delay(options.NotReadyGrace, maxOutage, removed.count)))
	}
	return due
}

// due returns when to remove the node from an Instance.
func (o *outage) due(instance types.NamespacedName, options Options) time.Time {
	grace := options.NotReadyGrace
	if o.state == Gone {
		grace = options.GoneGrace
	}
	due := o.since.Add(grace)
	if used, found := o.lastUsed[instance]; found {
		due = deadline.Latest(due, used.Add(options.NotReadyGrace))
	}
	return o.removals.postponed(due, instance, options)
}

// clearDue returns when to remove the failures of a deleted node from a Configuration.
func (o *outage) clearDue(configuration types.NamespacedName, options Options) time.Time {
	return o.cleared.postponed(o.since.Add(options.GoneGrace), configuration, options)
}

// outages holds the outages of all nodes. It is not safe for concurrent use.
type outages map[string]*outage

// observe returns the outage of a node in the given state, or nil if the node is
// Ready.
func (all outages) observe(node string, state State, uid types.UID, now time.Time) *outage {
	if state == Ready {
		delete(all, node)
		return nil
	}
	current := all[node]
	if current == nil {
		all.forget(now)
		current = &outage{removals: removals{}, cleared: removals{}}
		all[node] = current
	}
	if current.state != state || current.uid != uid {
		current.state, current.uid, current.since = state, uid, now
		current.lastUsed = map[types.NamespacedName]time.Time{} // by Pods of the former state
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
