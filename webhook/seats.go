package webhook

import (
	"context"
	"slices"
	"sync"
)

// seats shares a bounded number of units, bytes of memory or processors, among users: no
// user can hold all of them, and the next to get some is the waiting user who holds the
// least. Users who hold the same take turns.
type seats struct {
	perUser int64

	mu      sync.Mutex
	free    int64
	held    map[string]int64
	waiting []*waiter // the next turn first, and of one user the oldest
}

// waiter is a request for a seat.
type waiter struct {
	user  string
	units int64
	// admitted is closed when the request has its seat.
	admitted chan struct{}
}

func newSeats(total, perUser int64) *seats {
	return &seats{perUser: perUser, free: total, held: map[string]int64{}}
}

// acquire waits for a seat until ctx is done. A seat is never larger than the share of
// one user. The caller must call release.
func (s *seats) acquire(ctx context.Context, user string, units int64) (release func(), err error) {
	w := s.enqueue(user, units)
	select {
	case <-w.admitted:
		return s.releaseOnce(w), nil
	case <-ctx.Done():
		if s.leave(w) {
			return nil, ctx.Err()
		}
		return s.releaseOnce(w), nil // it was admitted at the same time
	}
}

// tryAcquire returns a seat if one is free at once.
func (s *seats) tryAcquire(user string, units int64) (release func(), ok bool) {
	w := s.enqueue(user, units)
	if s.leave(w) {
		return nil, false
	}
	return s.releaseOnce(w), true
}

func (s *seats) enqueue(user string, units int64) *waiter {
	w := &waiter{user: user, units: min(units, s.perUser), admitted: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, w)
	s.admit()
	return w
}

// leave removes a request that is still waiting.
func (s *seats) leave(w *waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.waiting, w)
	if i < 0 {
		return false
	}
	s.waiting = slices.Delete(s.waiting, i, i+1)
	s.admit() // others may have waited behind it
	return true
}

func (s *seats) releaseOnce(w *waiter) func() {
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.free += w.units
		if s.held[w.user] -= w.units; s.held[w.user] == 0 {
			delete(s.held, w.user)
		}
		// Its user has had a turn: those who wait come first.
		others, own := partition(s.waiting, w.user)
		s.waiting = append(others, own...)
		s.admit()
	})
}

// partition returns the requests of other users and those of the user, both in order.
func partition(waiting []*waiter, user string) (others, own []*waiter) {
	for _, w := range waiting {
		if w.user == user {
			own = append(own, w)
		} else {
			others = append(others, w)
		}
	}
	return others, own
}

// admit gives seats to those who wait, as far as there are any. A request for which
// there is no room yet is not overtaken by smaller ones, or it could wait for ever.
func (s *seats) admit() {
	for {
		next := s.next()
		if next < 0 || s.waiting[next].units > s.free {
			return
		}
		w := s.waiting[next]
		s.waiting = slices.Delete(s.waiting, next, next+1)
		s.free -= w.units
		s.held[w.user] += w.units
		close(w.admitted)
	}
}

// next returns the index of the first request of the user who holds the least, among
// users who have not used up their share, or -1.
func (s *seats) next() int {
	next := -1
	for i, w := range s.waiting {
		if s.held[w.user]+w.units <= s.perUser && (next < 0 || s.held[w.user] < s.held[s.waiting[next].user]) {
			next = i
		}
	}
	return next
}
