package garbage

import (
	"runtime/debug"
	"testing"
)

func TestLimit(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	for gogc, want := range map[string]int{"": percent, "100": 100} {
		t.Setenv("GOGC", gogc)
		Limit()
		if got := debug.SetGCPercent(100); got != want {
			t.Errorf("GOGC=%s: garbage is collected at %d %%, want %d", gogc, got, want)
		}
	}
}
