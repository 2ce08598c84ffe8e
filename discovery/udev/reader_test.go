package udev

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// slowKernel answers reads when the test says so, those of the file "quick" at once.
type slowKernel struct {
	mu    sync.Mutex
	reads []chan string
}

func (k *slowKernel) read(file string, _ int64) (string, error) {
	if file == "quick" {
		return "value", nil
	}
	answer := make(chan string)
	k.mu.Lock()
	k.reads = append(k.reads, answer)
	k.mu.Unlock()
	return <-answer, nil
}

// asked returns the reads so far, in their order.
func (k *slowKernel) asked() []chan string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.reads)
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

// TestStuckReads has more reads in progress than may be stuck. Only when they are late, no other
// file is read, until one of them has returned.
func TestStuckReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kernel slowKernel
		r, info := newReader(kernel.read), infoOf(t)
		want := func(when, value string, want error) {
			t.Helper()
			if got, err := r.content("quick", info, 10); got != value || !errors.Is(err, want) {
				t.Errorf("%s: %q, %v; want %q, %v", when, got, err, value, want)
			}
		}
		var readers sync.WaitGroup
		for i := range maxStuckReads {
			readers.Go(func() {
				if _, err := r.content(fmt.Sprint(i), info, 10); !errors.Is(err, errTimeout) {
					t.Errorf("read %d: got %v, want %v", i, err, errTimeout)
				}
			})
		}
		synctest.Wait()
		want("none is late", "value", nil)
		readers.Wait()
		want("all are late", "", errStuck)
		kernel.asked()[0] <- "answer"
		synctest.Wait()
		want("one has returned", "value", nil)
		for _, each := range kernel.asked()[1:] {
			each <- "answer"
		}
	})
}

// TestLateAnswers checks which answers of drivers are used later, and that no file is read again
// while its driver does not answer. A device that is plugged in again has other files at the same
// paths.
func TestLateAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kernel slowKernel
		r, one, other := newReader(kernel.read), infoOf(t), infoOf(t)
		answer := func(number int, text string) {
			kernel.asked()[number-1] <- text
			synctest.Wait()
		}
		want := func(what string, info os.FileInfo, want string, reads int) {
			t.Helper()
			got, err := r.content("file", info, 10)
			if (err == nil) != (want != "") || err != nil && !errors.Is(err, errTimeout) || got != want || len(kernel.asked()) != reads {
				t.Errorf("%s: %q, %v after %d reads; want %q after %d", what, got, err, len(kernel.asked()), want, reads)
			}
		}
		inTime := func(number int, text string) {
			time.AfterFunc(r.timeout/2, func() { kernel.asked()[number-1] <- text })
		}
		want("no answer in time", one, "", 1)
		want("still none", one, "", 1)
		inTime(2, "2")
		want("a file that has taken its place", other, "2", 2)
		answer(1, "1")
		want("the late answer", one, "1", 2)
		want("it is used once", one, "", 3)
		answer(3, "3")
		inTime(4, "4")
		want("a late answer about another file", other, "4", 4)
		time.Sleep(maxResultAge + 1)
		inTime(5, "5")
		want("an answer that is too old", one, "5", 5)
		if len(r.late) != 0 {
			t.Errorf("%d answers are kept", len(r.late))
		}
	})
}
