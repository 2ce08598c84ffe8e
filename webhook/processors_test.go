package webhook

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// expensiveTurn is how long templating computes for a template that uses up its steps.
const expensiveTurn = 50 * time.Millisecond

// floodSize is how many reviews one user has at a time.
const floodSize = int(maxReviewBytesPerUser / minReviewBytes)

// Users who hold the same take turns, however many requests of one of them wait.
func TestUsersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSeats(1, 1)
		release := takeSeat(t, s, "greedy", 1)
		var order []string
		for _, user := range []string{"greedy", "greedy", "ann", "greedy", "bob", "ann"} {
			go func() {
				defer takeSeat(t, s, user, 1)()
				order = append(order, user)
			}()
			synctest.Wait()
		}
		release()
		synctest.Wait()
		if want := []string{"ann", "bob", "greedy", "ann", "greedy", "greedy"}; !slices.Equal(order, want) {
			t.Errorf("the order is %v, want %v", order, want)
		}
	})
}

// While one user's reviews keep the only processor busy, another user's review waits for
// one template each time that it computes.
func TestProcessorsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Chain{processors: newSeats(1, 1)}
		review := func(user string, parts int, took time.Duration) {
			err := c.compute(t.Context(), admissionRequest{user: userInfo(user)}, func(pass func() bool) {
				for range parts {
					time.Sleep(took)
					if !pass() {
						return
					}
				}
			})
			if err != nil {
				t.Error(err)
			}
		}
		var group sync.WaitGroup
		for range floodSize {
			group.Go(func() { review("mallory", 64, expensiveTurn) })
		}
		synctest.Wait()
		const computations = 3
		began := time.Now()
		for range computations {
			review("ann", 5, time.Millisecond)
		}
		if took := time.Since(began); took > computations*(expensiveTurn+5*time.Millisecond) {
			t.Errorf("ann's %d computations took %v, more than a turn of mallory's for each", computations, took)
		}
		group.Wait()
		if c.processors.free != 1 || len(c.processors.held) != 0 {
			t.Errorf("%d processors are free, and held are %v", c.processors.free, c.processors.held)
		}
	})
}

// A review that gets no processor in time is told so, and keeps none.
func TestNoProcessorInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Chain{processors: newSeats(1, 1)}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		passed := true
		err := c.compute(ctx, admissionRequest{user: userInfo("ann")}, func(pass func() bool) {
			go func() {
				defer takeSeat(t, c.processors, "bob", 1)()
				time.Sleep(time.Minute)
			}()
			synctest.Wait()
			time.Sleep(turnTime)
			passed = pass()
			passed = pass() || passed // it stays so
		})
		if err == nil || passed {
			t.Errorf("it went on without a processor: %v", err)
		}
		err = c.compute(ctx, admissionRequest{user: userInfo("ann")}, func(func() bool) { t.Error("it computes without a processor") })
		if err == nil {
			t.Error("there is no error")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if c.processors.free != 1 || len(c.processors.held) != 0 {
			t.Errorf("%d processors are free, and held are %v", c.processors.free, c.processors.held)
		}
	})
}
