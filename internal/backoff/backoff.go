// Package backoff computes delays between attempts from the number of failures.
// A loop that only waits between its own attempts uses wait.Backoff of
// apimachinery instead.
package backoff

import "time"

// Delay returns initial, doubled once for each earlier failure, but never more
// than limit.
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
