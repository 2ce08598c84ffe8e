package main

import (
	"runtime/debug"
	"testing"
)

func TestLimitGarbage(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	for gogc, want := range map[string]int{"": gcPercent, "100": 100} {
		t.Setenv("GOGC", gogc)
		limitGarbage()
		if got := debug.SetGCPercent(100); got != want {
			t.Errorf("GOGC=%s: garbage is collected at %d %%, want %d", gogc, got, want)
		}
	}
}
