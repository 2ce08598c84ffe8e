package webhook

import (
	"context"
	"runtime"
	"time"
)

// turnTime is how long a review computes before it lets others go first.
const turnTime = 10 * time.Millisecond

// newProcessors returns seats for the processors of this machine. One user gets at most
// half of them, unless there is only one.
func newProcessors() *seats {
	count := int64(runtime.GOMAXPROCS(0))
	return newSeats(count, max(1, count/2))
}

// compute calls a function as soon as a processor is free for the review's user. The
// function must wait neither for memory nor for the API server. It calls pass between
// parts of its work: after a turn, the processor goes to the next user who waits. If
// there is no time left to get one again, pass returns false, and compute an error.
func (c *Chain) compute(ctx context.Context, r admissionRequest, f func(pass func() bool)) error {
	user := tenant(r.user)
	release, err := c.processors.acquire(ctx, user, 1)
	if err != nil {
		return errBusy
	}
	defer func() { release() }()
	began := time.Now()
	f(func() bool {
		if err != nil || time.Since(began) < turnTime {
			return err == nil
		}
		release()
		var next func()
		if next, err = c.processors.acquire(ctx, user, 1); err == nil {
			release, began = next, time.Now()
		}
		return err == nil
	})
	if err != nil {
		return errBusy
	}
	return nil
}
