// Package pool shares a bounded number of slots among the requests of agents, so that the
// request of one Configuration does not use up what the others need.
//
// Always: a slot that becomes free goes to the waiting request that holds the fewest.
// Never: a slot is taken from a request that holds it.
package pool

import (
	"context"
	"slices"
	"sync"
)

// Pool is a number of slots that the requests of agents share. A slot that becomes free
// goes to the waiting request that holds the fewest, so that a request with many silent
// servers delays another one by one call at most.
type Pool struct {
	mu   sync.Mutex
	free int
	// waiting are the shares with waiters, the one that began to wait first at the front.
	// There are none while a slot is free.
	waiting []*Share
}

// Share is what one request has of a pool. It is safe for concurrent use.
type Share struct {
	pool  *Pool
	held  int
	queue []chan struct{} // a channel is closed when its waiter has a slot
}

// New returns a pool with some free slots.
func New(size int) *Pool { return &Pool{free: size} }

// Share returns the share of another request.
func (p *Pool) Share() *Share { return &Share{pool: p} }

// Acquire waits for a slot. The caller calls release once. The error is that of ctx.
func (s *Share) Acquire(ctx context.Context) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	turn := s.enqueue()
	if turn == nil {
		return s.release, nil
	}
	select {
	case <-turn:
		return s.release, nil
	case <-ctx.Done():
		s.leave(turn)
		return nil, ctx.Err()
	}
}

// enqueue takes a slot and returns nil, or returns a channel that is closed later.
func (s *Share) enqueue() chan struct{} {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	if s.pool.free > 0 {
		s.pool.free--
		s.held++
		return nil
	}
	if len(s.queue) == 0 {
		s.pool.waiting = append(s.pool.waiting, s)
	}
	turn := make(chan struct{})
	s.queue = append(s.queue, turn)
	return turn
}

// leave ends the wait for a slot, which may have been granted in the meantime.
func (s *Share) leave(turn chan struct{}) {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	at := slices.Index(s.queue, turn)
	if at < 0 {
		s.releaseLocked()
		return
	}
	s.queue = slices.Delete(s.queue, at, at+1)
	s.pool.removeIdle()
}

// Held returns the number of slots that the request holds.
func (s *Share) Held() int {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	return s.held
}

func (s *Share) release() {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.releaseLocked()
}

func (s *Share) releaseLocked() {
	s.held--
	if len(s.pool.waiting) == 0 {
		s.pool.free++
		return
	}
	next := slices.MinFunc(s.pool.waiting, func(a, b *Share) int { return a.held - b.held }) // the first of equals
	close(next.queue[0])
	next.queue = next.queue[1:]
	next.held++
	s.pool.removeIdle()
}

// removeIdle removes shares without waiters.
func (p *Pool) removeIdle() {
	p.waiting = slices.DeleteFunc(p.waiting, func(s *Share) bool { return len(s.queue) == 0 })
}
