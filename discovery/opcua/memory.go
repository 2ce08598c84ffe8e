package opcua

import (
	"maps"
	"sync"
)

// memory has what was learned over the network, by key, as long as polls use it. It has at
// most maxRemembered entries, and is safe for concurrent use. Its zero value is empty.
type memory[T any] struct {
	mu      sync.Mutex
	entries map[string]*memoryEntry[T]
}

type memoryEntry[T any] struct {
	value  T
	unused int // calls of prune since the latest use
}

// recall returns what is remembered of a key, which counts as a use.
func (m *memory[T]) recall(key string) (value T, isKnown bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	entry := m.entries[key]
	if entry == nil {
		return value, false
	}
	entry.unused = 0
	return entry.value, true
}

// remember sets the value of a key, unless it is a new one and there are too many.
func (m *memory[T]) remember(key string, value T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entries == nil {
		m.entries = map[string]*memoryEntry[T]{}
	}
	if m.entries[key] != nil || len(m.entries) < maxRemembered {
		m.entries[key] = &memoryEntry[T]{value: value}
	}
}

// prune forgets what was not used in this many polls in a row.
func (m *memory[T]) prune(polls int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.entries, func(_ string, entry *memoryEntry[T]) bool {
		entry.unused++
		return entry.unused > polls
	})
}
