package udev

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// limit bounds how long a test waits. No test passes by reaching it.
const limit = 30 * time.Second

// TestDatabaseComesLater has a udevd that starts after the handler, and a database that is
// removed while it is watched.
func TestDatabaseComesLater(t *testing.T) {
	m := newMachine(t, "serial.txt")
	read, _, failures := m.faulty()
	m.must(os.RemoveAll(m.run))
	h := &hub{tree: read, reopenInterval: time.Millisecond}
	s := h.subscribe()
	defer s.close()
	// wait repeats an action until it has caused the event. Before that, it may have
	// happened while the directory was not watched.
	wait := func(event string, action func(), seen func(devPaths []string, all bool) bool) {
		t.Helper()
		deadline := time.After(limit)
		for {
			action()
			select {
			case <-s.ready:
				if seen(s.take()) {
					return
				}
			case <-time.After(20 * time.Millisecond):
			case <-deadline:
				t.Fatalf("no event: %s", event)
			}
		}
	}
	store := func() { m.store(stickTTY, "G:x\n") }
	one := func(devPaths []string, _ bool) bool { return len(devPaths) == 1 && devPaths[0] == stickTTY }
	all := func(_ []string, all bool) bool { return all }
	nothing := func() {}

	m.must(os.MkdirAll(m.run, 0o755))
	wait("udevd creates its directory", nothing, all)
	if n := failures.of(failedDataWatch); n != 0 {
		t.Errorf("a missing database counts as %d failures", n)
	}
	wait("udevd writes its first entry", store, one)
	m.must(os.RemoveAll(filepath.Join(m.run, "data")))
	wait("udevd writes into another directory", store, one)
	m.must(os.RemoveAll(m.run))
	for began := time.Now(); failures.of(failedDataWatch) == 0; time.Sleep(time.Millisecond) {
		if time.Since(began) > limit {
			t.Fatal("the removal is not noticed")
		}
	}
	wait("all is created again", func() { m.must(os.MkdirAll(m.run, 0o755)) }, all)
	wait("udevd writes its first entry again", store, one)
}
