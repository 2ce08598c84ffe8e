package budget

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
)

// running is a request that takes memory until it is told to end, or leaves.
type running struct {
	account *Account
	ctx     context.Context
	leave   func() error
}

func start(t *testing.T, b *Budget) *running {
	t.Helper()
	r, left, ended, began := &running{}, make(chan struct{}), make(chan error, 1), make(chan struct{})
	go func() {
		ended <- b.Run(context.Background(), func(ctx context.Context) error {
			r.ctx, r.account = ctx, Open(ctx)
			close(began)
			<-left
			return nil
		})
	}()
	<-began
	r.leave = sync.OnceValue(func() error {
		close(left)
		return <-ended
	})
	t.Cleanup(func() { _ = r.leave() })
	return r
}

func exceeded(err error) bool { return errors.As(err, new(*ExceededError)) }

// TestGreatestEnds checks that requests that take much end, and not those that take less,
// whichever came first.
func TestGreatestEnds(t *testing.T) {
	b := New(1000)
	small, great := start(t, b), start(t, b)
	if err := errors.Join(small.account.Set(100), great.account.Set(900)); err != nil {
		t.Fatal(err)
	}
	newest := start(t, b)
	if err := newest.account.Set(100); err != nil || !exceeded(context.Cause(great.ctx)) {
		t.Fatalf("%v; the greatest: %v", err, context.Cause(great.ctx))
	}
	if err := great.account.Set(1); !exceeded(err) {
		t.Errorf("a request that must end takes memory: %v", err)
	}
	if err := great.leave(); !exceeded(err) {
		t.Errorf("the greatest ends with %v", err)
	}
	if err := newest.account.Add(801); !exceeded(err) || small.ctx.Err() != nil {
		t.Errorf("a request that grows beyond the budget: %v; the small one: %v", err, small.ctx.Err())
	}
	_ = newest.leave()
	if small.leave(); b.taken != 0 || b.ending != 0 || len(b.shares) != 0 {
		t.Errorf("%d bytes are taken, %d ending, by %d requests that have ended", b.taken, b.ending, len(b.shares))
	}
}

// TestEndingIsBounded checks that what others take that do not end is not taken twice.
func TestEndingIsBounded(t *testing.T) {
	b := New(1000)
	great := start(t, b)
	if err := great.account.Set(1000); err != nil {
		t.Fatal(err)
	}
	for i := range 9 {
		accepted := start(t, b).account.Set(90) == nil
		if small := i < 4; accepted != (i < 3 || small) {
			t.Errorf("90 bytes for request %d, while 1000 of 1000 are not free yet: %v", i+2, accepted)
		}
	}
	_ = great.leave()
	if err := start(t, b).account.Set(50); err != nil {
		t.Errorf("after the greatest has ended: %v", err)
	}
}

// TestManyRequests checks that an equal part of the budget is safe from any number of
// others, in any order.
func TestManyRequests(t *testing.T) {
	b := New(100_000)
	small := start(t, b)
	if err := small.account.Set(900); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 99 {
		group.Go(func() {
			_ = b.Run(t.Context(), func(ctx context.Context) error {
				own := Open(ctx)
				for own.Add(100) == nil {
				}
				<-ctx.Done()
				return nil
			})
		})
	}
	group.Wait()
	if small.ctx.Err() != nil {
		t.Errorf("ended: %v", context.Cause(small.ctx))
	}
}

func TestProcess(t *testing.T) {
	for limit, want := range map[int64]int{math.MaxInt64: defaultBytes, 100 << 20: 50 << 20} {
		if got := bytesOf(limit); got != want {
			t.Errorf("GOMEMLIMIT %d: %d, want %d", limit, got, want)
		}
	}
	if err := Open(t.Context()).Set(math.MaxInt); err != nil {
		t.Errorf("without a budget: %v", err)
	}
	text := (&ExceededError{24 << 20}).Error()
	for _, want := range []string{"24 MiB", "GOMEMLIMIT", "restrict discoveryDetails"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
}
