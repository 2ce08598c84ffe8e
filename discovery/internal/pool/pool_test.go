package pool

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
)

// waitingCount returns how many wait for a slot.
func (s *Share) waitingCount() int {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	return len(s.queue)
}

// TestPoolIsFair checks that a request that waits for one slot gets the next, however many
// another request waits for.
func TestPoolIsFair(t *testing.T) {
	p := New(2)
	greedy, modest := p.Share(), p.Share()
	var releases []func()
	for range 2 {
		release, err := greedy.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		releases = append(releases, release)
	}
	var group sync.WaitGroup
	served := make(chan string, 10)
	wait := func(name string, s *Share) {
		before := s.waitingCount()
		group.Go(func() {
			release, err := s.Acquire(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			served <- name
			release()
		})
		for s.waitingCount() == before { // the deadline is the test's
			runtime.Gosched()
		}
	}
	for range 5 {
		wait("greedy", greedy)
	}
	wait("modest", modest)
	releases[0]()
	if first := <-served; first != "modest" {
		t.Errorf("the first slot went to the request that holds one already")
	}
	releases[1]()
	group.Wait()
	if p.free != 2 || greedy.held != 0 || modest.held != 0 || len(p.waiting) != 0 {
		t.Errorf("at the end: %d free, held %d and %d, %d shares wait", p.free, greedy.held, modest.held, len(p.waiting))
	}
}

// TestPoolCanceled checks that no slot is lost to a waiter that has left, whether or not
// the slot was granted to it in the meantime.
func TestPoolCanceled(t *testing.T) {
	p := New(1)
	s := p.Share()
	for range 200 {
		release, err := s.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				if release, err := s.Acquire(ctx); err == nil {
					release()
				} else if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
		group.Go(release)
		group.Go(cancel)
		group.Wait()
		if p.free != 1 || s.held != 0 || len(p.waiting) != 0 {
			t.Fatalf("%d free, %d held, %d shares wait", p.free, s.held, len(p.waiting))
		}
		cancel()
	}
}
