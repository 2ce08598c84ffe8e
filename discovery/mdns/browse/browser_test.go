package browse

import "testing"

// TestNothingIsKeptWithoutQueries ends the last query. What was known then must not be in the
// first list of a later one.
func TestNothingIsKeptWithoutQueries(t *testing.T) {
	b := New(Options{})
	s, err := newSubscription(Query{Types: []string{"_http._tcp"}, Interfaces: func(Interface) bool { return false }})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.subscribe(s); err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	b.machine.links["eth0"] = &link{machine: b.machine, entries: map[setKey]*entry{}}
	b.sockets[socketID{index: eth0}] = nil
	b.mu.Unlock()
	b.unsubscribe(s)
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.machine.links) > 0 || len(b.sockets) > 0 || b.timer.Stop() {
		t.Errorf("left: the interfaces %v, the sockets %v, or the timer", b.machine.links, b.sockets)
	}
}
