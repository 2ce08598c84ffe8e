//go:build !linux

package templating_test

import (
	"time"
)

func timed(f func()) time.Duration { return wallTime(f) }
