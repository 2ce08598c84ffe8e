package webhook

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// One user cannot take all seats, and the next seat goes to the user who holds the
// least, not to the one who asks most often.
func TestSeatsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSeats(10, 6)
		var order []string
		take := func(user string, bytes int64) func() { return takeSeat(t, s, user, bytes) }
		greedy := []func(){take("greedy", 3), take("greedy", 3)}
		if _, ok := s.tryAcquire("greedy", 1); ok {
			t.Error("greedy got more than the share of one user")
		}
		modest := take("modest", 4) // all are taken
		enqueue := func(user string, bytes int64) {
			go func() {
				release := take(user, bytes)
				order = append(order, user)
				release()
			}()
			synctest.Wait()
		}
		enqueue("greedy", 3)
		enqueue("greedy", 3)
		enqueue("late", 3)
		greedy[0]()
		synctest.Wait()
		if len(order) != 3 || order[0] != "late" {
			t.Errorf("the order is %v, want late first", order)
		}
		greedy[1]()
		modest()
		if s.free != 10 || len(s.held) != 0 {
			t.Errorf("%d are free, and held are %v", s.free, s.held)
		}
	})
}

// Who waits too long gets an error, and does not block those behind.
func TestSeatsTimeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSeats(10, 8)
		release, err := s.acquire(t.Context(), "a", 8)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		admitted := false
		go func() {
			defer takeSeat(t, s, "c", 2)()
			admitted = true
		}()
		if _, err := s.acquire(ctx, "b", 8); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
		synctest.Wait()
		if !admitted {
			t.Error("a small request is still blocked by a large one that has left")
		}
		release()
		if s.free != 10 || len(s.waiting) != 0 {
			t.Errorf("%d are free, and %d wait", s.free, len(s.waiting))
		}
	})
}

// takeSeat takes a seat and returns the function that gives it back.
func takeSeat(t *testing.T, s *seats, user string, bytes int64) func() {
	t.Helper()
	release, err := s.acquire(t.Context(), user, bytes)
	if err != nil {
		t.Error(err)
		return func() {}
	}
	return release
}
