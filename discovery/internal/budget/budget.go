package budget

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"sync"
)

const (
	// defaultBytes is the budget of a process without GOMEMLIMIT. The other handlers' is
	// the part of GOMEMLIMIT that partOfLimit divides: the rest is for garbage, and for
	// answers that are being read.
	defaultBytes = 24 << 20
	partOfLimit  = 2
	// maxEndingPart bounds what requests may take that have been told to end, as a part
	// of the budget, until others have to wait for it that take more than half of an equal
	// part.
	maxEndingPart = 4
)

// Budget is memory that requests share. It is safe for concurrent use.
type Budget struct {
	bytes int

	mu     sync.Mutex // protects what follows, and what shares and accounts have
	taken  int
	ending int // the part of taken that belongs to requests that have been told to end
	shares map[*share]bool
}

// share is what a request takes.
type share struct {
	budget *Budget
	end    context.CancelCauseFunc
	taken  int
	err    *ExceededError // why it was told to end, or nil
	left   bool           // the request has ended
}

// New returns a budget of some bytes.
func New(bytes int) *Budget { return &Budget{bytes: bytes, shares: map[*share]bool{}} }

// Process returns the budget of this process.
var Process = sync.OnceValue(func() *Budget { return New(bytesOf(debug.SetMemoryLimit(-1))) })

// bytesOf returns the budget of a process with this GOMEMLIMIT.
func bytesOf(limit int64) int {
	if limit == math.MaxInt64 {
		return defaultBytes
	}
	return int(limit / partOfLimit)
}

// ExceededError is the reason why a request ended that takes too much. Its text is the same
// each time, because agents write it into a status.
type ExceededError struct{ budget int }

// Error implements error.
func (e *ExceededError) Error() string {
	return fmt.Sprintf("memory of the handler: the devices of this Configuration, with what it takes to find them, need more "+
		"than those of others, and together they exceed the %d MiB that all Configurations share: restrict discoveryDetails, "+
		"or raise the handler's memory limit and its GOMEMLIMIT", e.budget>>20)
}

type contextKey struct{}

// Run calls do for a request, whose context carries its share of the budget. The context
// is canceled if the request must end; the error is then an [*ExceededError].
func (b *Budget) Run(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := &share{budget: b, end: cancel}
	b.mu.Lock()
	b.shares[s] = true
	b.mu.Unlock()
	defer b.remove(s)
	err := do(context.WithValue(ctx, contextKey{}, s))
	if exceeded, ok := errors.AsType[*ExceededError](context.Cause(ctx)); ok {
		return exceeded
	}
	return err
}

func (b *Budget) remove(s *share) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.shares, s)
	b.taken -= s.taken
	if s.err != nil {
		b.ending -= s.taken
	}
	s.left = true
}

// Account counts one kind of memory of a request. It is safe for concurrent use. A nil
// *Account counts nothing.
type Account struct {
	share *share // nil without a budget
	taken int
}

// Open returns an account of the request with this context. Without [Budget.Run], it has
// no limit.
func Open(ctx context.Context) *Account {
	s, _ := ctx.Value(contextKey{}).(*share)
	return &Account{share: s}
}

// Set sets what the account counts, in bytes. An error is an [*ExceededError]: the caller
// frees the memory and ends the request.
func (a *Account) Set(bytes int) error {
	if a == nil || a.share == nil {
		return nil
	}
	a.share.budget.mu.Lock()
	defer a.share.budget.mu.Unlock()
	return a.add(bytes - a.taken)
}

// Add adds some bytes, which may be negative. It is like Set otherwise.
func (a *Account) Add(bytes int) error {
	if a == nil || a.share == nil {
		return nil
	}
	a.share.budget.mu.Lock()
	defer a.share.budget.mu.Unlock()
	return a.add(bytes)
}

// add is called with the budget's mu.
func (a *Account) add(bytes int) error {
	s, b := a.share, a.share.budget
	if s.left {
		return nil
	}
	a.taken += bytes
	s.taken += bytes
	b.taken += bytes
	if s.err != nil {
		b.ending += bytes
		return s.err
	}
	for bytes > 0 && b.taken-b.ending > b.bytes {
		greatest := b.greatest(s)
		if b.endShare(greatest); greatest == s {
			break
		}
	}
	if s.err == nil && bytes > 0 && b.taken > b.bytes+b.bytes/maxEndingPart && s.taken > b.bytes/(2*len(b.shares)) {
		b.endShare(s) // the memory of the others is not free yet
	}
	if s.err != nil {
		return s.err
	}
	return nil
}

// greatest returns the share that takes the most, or own if it takes as much.
func (b *Budget) greatest(own *share) *share {
	greatest := own
	for s := range b.shares {
		if s.err == nil && s.taken > greatest.taken {
			greatest = s
		}
	}
	return greatest
}

func (b *Budget) endShare(s *share) {
	s.err = &ExceededError{b.bytes}
	b.ending += s.taken
	s.end(s.err)
}
