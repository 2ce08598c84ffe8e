// Package backoff computes the delays between attempts, and waits for them.
package backoff

import (
	"context"
	"time"
)

// Delay returns initial, doubled once for each earlier failure, but never more
// than limit. Callers whose attempts could coincide with those of others add
// [k8s.io/apimachinery/pkg/util/wait.Jitter].
func Delay(initial, limit time.Duration, failures int) time.Duration {
	delay := initial
	for range failures {
		if delay >= limit {
			break
		}
		delay *= 2
	}
	return min(delay, limit)
}

// Sleep waits until the delay has passed or ctx is done. It reports whether ctx is
// not done.
func Sleep(ctx context.Context, delay time.Duration) bool {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
