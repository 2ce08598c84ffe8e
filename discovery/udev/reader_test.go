package udev

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// eventually waits until something holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// TestManyReadsAtATime has more reads in progress than may be stuck. None of them is
// late, so others go on.
func TestManyReadsAtATime(t *testing.T) {
	m := newMachine(t)
	m.plug("/devices/a\n  subsystem bus/usb\n  attr quick value\n  attr slow answer\n")
	read, fault, failures := m.faulty()
	read.reader.timeout = time.Hour
	answer := fault.block("a/slow")
	var readers sync.WaitGroup
	defer readers.Wait()
	defer answer()
	const count = 2 * maxStuckReads
	for range count {
		readers.Go(func() {
			if value, found, err := read.attribute("/devices/a", "slow"); value != "answer" || !found || err != nil {
				t.Errorf("got %q, %t, %v", value, found, err)
			}
		})
	}
	eventually(t, "all reads are in progress", func() bool { return fault.begun("a/slow") == count })
	if value, found, err := read.attribute("/devices/a", "quick"); value != "value" || !found || err != nil {
		t.Errorf("next to %d others, the attribute is %q, %t, %v", count, value, found, err)
	}
	answer()
	readers.Wait()
	if got := failures.of(failedAttribute); got != 0 {
		t.Errorf("%d failures", got)
	}
}

// TestStuckReads has files whose drivers do not answer. They are read once, however often
// they are requested, and only so many of them keep others from being read.
func TestStuckReads(t *testing.T) {
	m := newMachine(t)
	m.plug("/devices/a\n  subsystem bus/usb\n  attr quick value\n")
	read, fault, _ := m.faulty()
	read.reader.timeout = time.Millisecond
	answer := fault.block("/stuck")
	defer answer()
	stuckAttribute := func(i int) (string, error) {
		name := fmt.Sprintf("%d/stuck", i)
		value, _, err := read.attribute("/devices/a", name)
		return value, err
	}
	for i := range maxStuckReads {
		m.write("late\n", m.sys, "devices/a", fmt.Sprint(i), "stuck")
		for range 3 {
			if _, err := stuckAttribute(i); !errors.Is(err, errTimeout) {
				t.Errorf("read %d: got %v, want %v", i, err, errTimeout)
			}
		}
		if i == maxStuckReads-2 {
			read.reader.timeout = time.Minute // for the file that answers
			if value, found, err := read.attribute("/devices/a", "quick"); value != "value" || !found || err != nil {
				t.Errorf("next to %d stuck ones, the attribute is %q, %t, %v", i+1, value, found, err)
			}
			read.reader.timeout = time.Millisecond
		}
	}
	if got := fault.begun("/stuck"); got != maxStuckReads {
		t.Errorf("%d reads for %d files", got, maxStuckReads)
	}
	if _, _, err := read.attribute("/devices/a", "quick"); !errors.Is(err, errStuck) {
		t.Errorf("beyond the bound: got %v, want %v", err, errStuck)
	}
	answer()
	read.reader.timeout = time.Minute
	eventually(t, "the stuck reads return", func() bool {
		value, found, err := read.attribute("/devices/a", "quick")
		return value == "value" && found && err == nil
	})
	eventually(t, "a late answer is used", func() bool { value, err := stuckAttribute(0); return value == "late" && err == nil })
}

// infoOf returns what identifies a new file.
func infoOf(t *testing.T) os.FileInfo {
	t.Helper()
	info, err := os.Stat(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// TestStuckReadOfAFormerDevice has a device that is plugged in again: its file has the path of
// one whose driver still does not answer.
func TestStuckReadOfAFormerDevice(t *testing.T) {
	released := make(chan struct{})
	var reads atomic.Int32
	r := newReader(func(string, int64) (string, error) {
		if reads.Add(1) == 1 {
			<-released
			return "former", nil
		}
		return "new", nil
	})
	defer close(released)
	r.timeout = time.Millisecond
	if _, err := r.content("file", infoOf(t), 10); !errors.Is(err, errTimeout) {
		t.Fatalf("got %v, want %v", err, errTimeout)
	}
	r.timeout = time.Minute
	if text, err := r.content("file", infoOf(t), 10); text != "new" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
}

// TestLateAnswers checks which answers of drivers are used later.
func TestLateAnswers(t *testing.T) {
	now := time.Now()
	var mu sync.Mutex // protects now
	blocked, reads := make(chan struct{}), 0
	r := newReader(func(string, int64) (string, error) {
		mu.Lock()
		reads++
		text := fmt.Sprint(reads)
		mu.Unlock()
		<-blocked
		return text, nil
	})
	r.now = func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	late := func(info os.FileInfo) {
		t.Helper()
		r.timeout = time.Millisecond
		if _, err := r.content("file", info, 1); !errors.Is(err, errTimeout) {
			t.Fatalf("got %v, want %v", err, errTimeout)
		}
		r.timeout = time.Minute
		blocked <- struct{}{}
		eventually(t, "the read returns", func() bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.stuck == 0
		})
	}
	want := func(what string, info os.FileInfo, want string) {
		t.Helper()
		if got, err := r.content("file", info, 1); got != want || err != nil {
			t.Errorf("%s: %q, %v; want %q", what, got, err, want)
		}
	}
	one, other := infoOf(t), infoOf(t)
	late(one)
	want("the late answer", one, "1")
	late(one)
	go func() { blocked <- struct{}{} }()
	want("a file that has taken its place", other, "3")
	mu.Lock()
	now = now.Add(maxResultAge + 1)
	mu.Unlock()
	go func() { blocked <- struct{}{} }()
	want("an answer that is too old", one, "4")
	if len(r.late) != 0 {
		t.Errorf("%d answers are kept", len(r.late))
	}
}

// TestPipe reads a file for which the kernel itself blocks.
func TestPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o644); err != nil {
		t.Fatal(err)
	}
	r := newReader(readUpTo)
	r.timeout = time.Millisecond
	info := infoOf(t)
	if _, err := r.content(pipe, info, 10); !errors.Is(err, errTimeout) {
		t.Errorf("got %v, want %v", err, errTimeout)
	}
	if err := os.WriteFile(pipe, []byte("answer"), 0); err != nil {
		t.Fatal(err)
	}
	var text string
	eventually(t, "the answer is used", func() (ok bool) {
		var err error
		text, err = r.content(pipe, info, 10)
		return err == nil
	})
	if text != "answer" {
		t.Errorf("got %q", text)
	}
}
