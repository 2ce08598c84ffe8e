package nodes

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// longestOutage bounds what is remembered of nodes that are gone, and how long an
// agent that puts its node back is left alone.
const longestOutage = 24 * time.Hour

// outage is the time during which a node is not Ready. It begins when we see it:
// the clocks of small machines are not to be trusted, and if the controller is
// restarted, it only begins anew.
type outage struct {
	state State
	uid   types.UID
	since time.Time // in this state
	used  map[types.NamespacedName]time.Time
	taken map[types.NamespacedName]taken
}

// taken is when the node was taken off an Instance last, and how often.
type taken struct {
	at    time.Time
	times int
}

// due is when the node is to be taken off an Instance on which it is.
//
// It is there again after it was taken off if its agent has put it back: so the
// agent lives, though its kubelet does not, and sees the device. It may die later,
// without its node having been Ready, so the answer is not never.
func (o *outage) due(instance types.NamespacedName, options Options) time.Time {
	grace := options.NotReadyGrace
	if o.state == Gone {
		grace = options.GoneGrace
	}
	due := o.since.Add(grace)
	if asked, found := o.used[instance]; found {
		due = later(due, asked.Add(options.NotReadyGrace))
	}
	if last, found := o.taken[instance]; found {
		due = later(due, last.at.Add(doubled(options.NotReadyGrace, last.times, longestOutage)))
	}
	return due
}

// inUse notes that a Pod of the node uses an Instance. Pods are not watched, so
// they are asked for again after another grace.
func (o *outage) inUse(instance types.NamespacedName, now time.Time) { o.used[instance] = now }

// tookOff notes that the node was taken off an Instance.
func (o *outage) tookOff(instance types.NamespacedName, now time.Time) {
	o.taken[instance] = taken{at: now, times: o.taken[instance].times + 1}
}

// outages are those of all nodes. They are for one goroutine.
type outages map[string]*outage

// see returns the outage of a node that is in a state, or nil if it is Ready.
func (all outages) see(node string, state State, uid types.UID, now time.Time) *outage {
	if state == Ready {
		delete(all, node)
		return nil
	}
	current := all[node]
	if current == nil {
		all.forget(now)
		current = &outage{taken: map[types.NamespacedName]taken{}}
		all[node] = current
	}
	if current.state != state || current.uid != uid {
		current.state, current.uid, current.since = state, uid, now
		current.used = map[types.NamespacedName]time.Time{} // by Pods of another time
	}
	return current
}

// forget drops nodes that went long ago: names of nodes need not repeat.
func (all outages) forget(now time.Time) {
	for name, old := range all {
		if old.state == Gone && now.Sub(old.since) > 2*longestOutage {
			delete(all, name)
		}
	}
}

// doubled is a duration doubled some times, up to a limit.
func doubled(duration time.Duration, times int, limit time.Duration) time.Duration {
	for range times {
		if duration >= limit {
			break
		}
		duration *= 2
	}
	return min(duration, limit)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// sooner is the earlier of two times, of which a zero one does not count.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
