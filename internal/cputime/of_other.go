//go:build !linux

package apitest

import "time"

// ProcessorTime returns the elapsed time of f.
func ProcessorTime(f func()) time.Duration { return elapsedTime(f) }
