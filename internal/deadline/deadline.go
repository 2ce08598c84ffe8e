// Package deadline compares the times at which something is due. A zero time means
// never.
package deadline

import (
	"slices"
	"time"
)

// Earliest returns the earliest of some times. It ignores zero times, and returns the
// zero time if there is no other.
func Earliest(times ...time.Time) time.Time {
	var earliest time.Time
	for _, t := range times {
		if earliest.IsZero() || !t.IsZero() && t.Before(earliest) {
			earliest = t
		}
	}
	return earliest
}

// Latest returns the latest of some times.
func Latest(times ...time.Time) time.Time {
	return slices.MaxFunc(times, time.Time.Compare)
}
