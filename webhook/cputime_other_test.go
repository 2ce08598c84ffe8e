//go:build !linux

package webhook

import "time"

func processorTime(f func()) time.Duration { return elapsedTime(f) }
