package opcua

import (
	"strconv"
	"testing"
)

type number int

func (number) size() int { return 0 }

// TestMemoryIsBounded checks that a full memory keeps, and updates, what it has.
func TestMemoryIsBounded(t *testing.T) {
	var m memory[number]
	for i := range maxRemembered {
		m.remember(strconv.Itoa(i), number(i))
	}
	m.remember("new", 1)
	if _, isKnown := m.recall("new"); isKnown {
		t.Errorf("more than %d entries are remembered", maxRemembered)
	}
	m.remember("0", -1)
	if value, isKnown := m.recall("0"); !isKnown || value != -1 {
		t.Errorf("an entry of a full memory is %d, known %v, want -1", value, isKnown)
	}
	for range 2 {
		m.prune(1)
		m.recall("0")
	}
	m.remember("new", 1)
	if got := len(m.entries); got != 2 {
		t.Errorf("%d entries are left, want those two that are in use", got)
	}
}
