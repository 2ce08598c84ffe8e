package opcua

import (
	"maps"
	"sync"

	"akri.sh/akri/discovery/internal/budget"
)

// What is remembered for a key takes these bytes in addition to its texts, and an
// application of a target, or one that is looked up, these.
const (
	entryBytes       = 256
	applicationBytes = 768
	// targetBytes is the memory of a target, with the goroutine that asks it.
	targetBytes = 8 << 10
)

// memory has what was learned over the network, by key, as long as polls use it. It has at
// most maxRemembered entries, and is safe for concurrent use. Its zero value is empty.
type memory[T interface{ size() int }] struct {
	// account, if not nil, counts the entries.
	account *budget.Account

	mu      sync.Mutex
	entries map[string]*memoryEntry[T]
}

type memoryEntry[T interface{ size() int }] struct {
	value  T
	bytes  int
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
	former, bytes := m.entries[key], entryBytes+len(key)+value.size()
	switch {
	case former == nil && len(m.entries) >= maxRemembered:
		return
	case former != nil:
		m.count(-former.bytes)
	}
	if m.count(bytes) {
		m.entries[key] = &memoryEntry[T]{value: value, bytes: bytes}
	} else {
		delete(m.entries, key) // the request ends
	}
}

// count reports whether there is room for some bytes more.
func (m *memory[T]) count(bytes int) bool { return m.account.Add(bytes) == nil }

// prune forgets what was not used in this many polls in a row.
func (m *memory[T]) prune(polls int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.entries, func(_ string, entry *memoryEntry[T]) bool {
		if entry.unused++; entry.unused > polls {
			m.count(-entry.bytes)
		}
		return entry.unused > polls
	})
}
