package filewatch

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// limit bounds how long a test waits. No test passes by reaching it.
const limit = 30 * time.Second

// instances returns how many inotify instances the process has.
func instances(t *testing.T) int {
	t.Helper()
	descriptors, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, each := range descriptors {
		target, err := os.Readlink("/proc/self/fd/" + each.Name())
		if err == nil && strings.Contains(target, "inotify") {
			count++
		}
	}
	return count
}

func await(t *testing.T, changed <-chan struct{}) {
	t.Helper()
	select {
	case <-changed:
	case <-time.After(limit):
		t.Fatal("no signal")
	}
}

// write replaces a file as careful programs do.
func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path+"~", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+"~", path); err != nil {
		t.Fatal(err)
	}
}

// TestManyCallers checks that the callers of a file share one of the node's few inotify
// instances, that each has its own signals, and that the last one ends the watch.
func TestManyCallers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	before := instances(t)
	type caller struct {
		changed <-chan struct{}
		stop    func()
	}
	var callers []caller
	for range 300 {
		changed, stop, err := File(path)
		if err != nil {
			t.Fatal(err)
		}
		callers = append(callers, caller{changed, stop})
	}
	if n := instances(t) - before; n != 1 {
		t.Errorf("%d callers use %d inotify instances, want 1", len(callers), n)
	}
	write(t, path)
	for _, each := range callers {
		await(t, each.changed)
	}
	var stopping sync.WaitGroup
	for _, each := range callers[1:] {
		stopping.Go(each.stop)
	}
	stopping.Wait()
	write(t, path)
	await(t, callers[0].changed)
	callers[0].stop()
	callers[0].stop() // once more has no effect
	if n := instances(t) - before; n != 0 {
		t.Errorf("%d inotify instances are left", n)
	}
	again, stop, err := File(path)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	write(t, path)
	await(t, again)
}

// TestDirectoryIsReplaced checks that the removal of the directory is a change, and that
// the next caller watches the new one.
func TestDirectoryIsReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	path := filepath.Join(dir, "file")
	if _, stop, err := File(path); err == nil {
		stop()
		t.Fatal("a file whose directory does not exist can be watched")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	first, stop, err := File(path)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	await(t, first)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	second, stopSecond, err := File(path)
	if err != nil {
		t.Fatal(err)
	}
	defer stopSecond()
	write(t, path)
	await(t, second)
}
