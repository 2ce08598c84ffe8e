package controller

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/internal/metadata"
)

// statusCache holds the statuses that the informer cache does not have: those that
// were written last, until the informer cache has caught up, and those that are held
// back, until they are written. A pass that relied on an older one would apply or
// write again.
type statusCache[S any] struct {
	mu       sync.Mutex
	statuses map[types.UID]*recentStatus[S]
}

// recentStatus is what is remembered of one parent's status.
type recentStatus[S any] struct {
	at      time.Time // of the last write; zero if there was none
	written *S        // nil once the informer cache has it
	version string    // resourceVersion of the parent with the written status
	seen    string    // resourceVersion of the parent in its last event, since the first write
	held    *S        // nil if nothing is held back
	since   time.Time // when the first of what is held back was computed
}

func newStatusCache[S any]() *statusCache[S] {
	return &statusCache[S]{statuses: map[types.UID]*recentStatus[S]{}}
}

// latest returns the status that the API server has, as far as this process knows,
// and the one that the next plan depends on: the same, or what is held back. parent
// is the cached parent, with the cached status. ok is false if the informer cache has
// a later one by now: the caller must read it again.
func (c *statusCache[S]) latest(parent metav1.Object, cached S) (stored, latest S, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	recent := c.statuses[parent.GetUID()]
	if recent == nil {
		return cached, cached, true
	}
	if metadata.IsNewer(recent.seen, parent.GetResourceVersion()) {
		return cached, cached, false
	}
	recent.confirm(parent.GetResourceVersion())
	stored = cached
	if recent.written != nil {
		stored = *recent.written
	}
	latest = stored
	if recent.held != nil {
		latest = *recent.held
	}
	return stored, latest, true
}

// observed drops the written status of a parent if the informer cache has it.
// parent is that of an event.
func (c *statusCache[S]) observed(parent metav1.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	recent := c.statuses[parent.GetUID()]
	switch version := parent.GetResourceVersion(); {
	case recent == nil:
	case metadata.IsNewer(recent.seen, version): // versions go back: a backup of etcd was restored
		delete(c.statuses, parent.GetUID())
	default:
		recent.seen = version
		recent.confirm(version)
	}
}

// confirm drops the written status if a version of the parent in the informer cache has it.
func (r *recentStatus[S]) confirm(version string) {
	if r.written != nil && !metadata.IsNewer(r.version, version) {
		r.written, r.version = nil, ""
	}
}

// hold keeps a status that differs from the stored one, and returns how long it may
// wait before it is written, 0 for not at all. It is kept until it is written: the
// write may fail.
func (c *statusCache[S]) hold(parent types.UID, status S, urgent urgency, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	recent := c.recent(parent)
	if recent.held == nil {
		recent.since = now
	}
	recent.held = &status
	return max(urgent.due(recent.since, recent.at).Sub(now), 0)
}

// release drops the status that is held back, because the stored one is up to date.
func (c *statusCache[S]) release(parent types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if recent := c.statuses[parent]; recent != nil {
		recent.held = nil
	}
}

// remember records that a status was written, and the resourceVersion that the
// parent got by it.
func (c *statusCache[S]) remember(parent types.UID, status S, version string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	recent := c.recent(parent)
	recent.at, recent.written, recent.version, recent.held = now, &status, version, nil
	if recent.seen != "" {
		recent.confirm(recent.seen) // the watch may be faster than the answer
	}
}

// recent returns what is remembered of a parent. The caller holds the lock.
func (c *statusCache[S]) recent(parent types.UID) *recentStatus[S] {
	recent := c.statuses[parent]
	if recent == nil {
		recent = &recentStatus[S]{}
		c.statuses[parent] = recent
	}
	return recent
}

func (c *statusCache[S]) forget(parent types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.statuses, parent)
}

// count returns how many statuses are kept that the informer cache does not have,
// and how many of them are held back.
func (c *statusCache[S]) count() (written, held int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, recent := range c.statuses {
		if recent.written != nil {
			written++
		}
		if recent.held != nil {
			held++
		}
	}
	return written, held
}
