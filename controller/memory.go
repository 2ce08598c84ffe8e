package controller

import (
	"math"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
)

// memory holds the statuses that were written last and that the cache may not
// have yet: a pass that went by an older one would write again. What the cache
// has is dropped when it is next looked at.
type memory[S any] struct {
	mutex   sync.Mutex
	written map[types.NamespacedName]remembered[S]
}

type remembered[S any] struct {
	uid    types.UID
	at     time.Time
	status *S // nil once the cache has it
}

func newMemory[S any]() *memory[S] {
	return &memory[S]{written: map[types.NamespacedName]remembered[S]{}}
}

// latest is the status written last, or else the one in the cache.
func (m *memory[S]) latest(name types.NamespacedName, uid types.UID, cached S) S {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	last, found := m.written[name]
	if !found || last.uid != uid || last.status == nil {
		return cached
	}
	if equality.Semantic.DeepEqual(*last.status, cached) {
		last.status = nil
		m.written[name] = last
		return cached
	}
	return *last.status
}

// since is how long ago a status was written; very long if it never was.
func (m *memory[S]) since(name types.NamespacedName, uid types.UID) time.Duration {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if last, found := m.written[name]; found && last.uid == uid {
		return time.Since(last.at)
	}
	return math.MaxInt64
}

func (m *memory[S]) remember(name types.NamespacedName, uid types.UID, status S) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.written[name] = remembered[S]{uid: uid, at: time.Now(), status: &status}
}

// forget returns the UID of the object that has gone, if its status was written.
func (m *memory[S]) forget(name types.NamespacedName) types.UID {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	last := m.written[name]
	delete(m.written, name)
	return last.uid
}
