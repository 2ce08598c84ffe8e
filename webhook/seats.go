package webhook

import (
	"context"
	"slices"
	"sync"
)

// seats shares a bounded number of bytes of memory among users: no user can hold all of
// it, and the next to get some is the waiting user who holds the least.
type seats struct {
	perUser int64

	mu      sync.Mutex
	free    int64
	held    map[string]int64
	waiting []*waiter // oldest first
}

// waiter is a request for a seat.
type waiter struct {
	user  string
	bytes int64
	// admitted is closed when the request has its seat.
	admitted chan struct{}
}

func newSeats(total, perUser int64) *seats {
	return &seats{perUser: perUser, free: total, held: map[string]int64{}}
}

// acquire waits for a seat until ctx is done. A seat is never larger than the share of
// one user. The caller must call release.
func (s *seats) acquire(ctx context.Context, user string, bytes int64) (release func(), err error) {
	w := s.enqueue(user, bytes)
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
func (s *seats) tryAcquire(user string, bytes int64) (release func(), ok bool) {
	w := s.enqueue(user, bytes)
	if s.leave(w) {
		return nil, false
	}
	return s.releaseOnce(w), true
}

func (s *seats) enqueue(user string, bytes int64) *waiter {
	w := &waiter{user: user, bytes: min(bytes, s.perUser), admitted: make(chan struct{})}
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
		s.free += w.bytes
		if s.held[w.user] -= w.bytes; s.held[w.user] == 0 {
			delete(s.held, w.user)
		}
		s.admit()
	})
}

// admit gives seats to those who wait, as far as there are any. A request for which
// there is no room yet is not overtaken by smaller ones, or it could wait for ever.
func (s *seats) admit() {
	for {
		next := s.next()
		if next < 0 || s.waiting[next].bytes > s.free {
			return
		}
		w := s.waiting[next]
		s.waiting = slices.Delete(s.waiting, next, next+1)
		s.free -= w.bytes
		s.held[w.user] += w.bytes
		close(w.admitted)
	}
}

// next returns the index of the oldest request of the user who holds the least, among
// users who have not used up their share, or -1.
func (s *seats) next() int {
	next := -1
	for i, w := range s.waiting {
		if s.held[w.user]+w.bytes <= s.perUser && (next < 0 || s.held[w.user] < s.held[s.waiting[next].user]) {
			next = i
		}
	}
	return next
}
