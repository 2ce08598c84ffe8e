//go:build !linux

package cputime

import "time"

// Of returns the elapsed time of f.
func Of(f func()) time.Duration { return elapsed(f) }
