package controller

import (
	"math"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
)

// statusCache holds the statuses that were written last and that the informer
// cache may not have yet: a pass that relied on an older one would write again. A
// status is dropped as soon as the informer cache has it.
type statusCache[S any] struct {
	mu      sync.Mutex
	written map[types.UID]writtenStatus[S]
}

type writtenStatus[S any] struct {
	at     time.Time
	status *S // nil once the informer cache has it
}

func newStatusCache[S any]() *statusCache[S] {
	return &statusCache[S]{written: map[types.UID]writtenStatus[S]{}}
}

// latest returns the status that was written last, or else the cached one.
func (c *statusCache[S]) latest(parent types.UID, cached S) S {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, found := c.written[parent]
	if !found || last.status == nil {
		return cached
	}
	if equality.Semantic.DeepEqual(*last.status, cached) {
		last.status = nil
		c.written[parent] = last
		return cached
	}
	return *last.status
}

// since returns the time since a status was written, or a very long time if none
// was.
func (c *statusCache[S]) since(parent types.UID) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last, found := c.written[parent]; found {
		return time.Since(last.at)
	}
	return math.MaxInt64
}

func (c *statusCache[S]) remember(parent types.UID, status S) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.written[parent] = writtenStatus[S]{at: time.Now(), status: &status}
}

func (c *statusCache[S]) forget(parent types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.written, parent)
}
