package monitor

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"golang.org/x/time/rate"
)

// TestReporter checks what is counted, and what is in the log.
func TestReporter(t *testing.T) {
	var log bytes.Buffer
	counts := map[string]int{}
	r := NewReporter(func(reason string) { counts[reason]++ }, slog.New(slog.NewTextHandler(&log, nil)), "Odd")
	lines := func(want int) {
		t.Helper()
		if got := strings.Count(log.String(), "\n"); got != want {
			t.Errorf("%d lines in the log, want %d:\n%s", got, want, log.String())
		}
	}
	err := errors.New("no power")
	for range 3 {
		r.Failed("timeout", "http://10.0.0.1/", err)
		r.Once("foreign", "http://10.0.0.1/", err)
		r.Once("foreign", "http://10.0.0.2/", err)
	}
	lines(3)
	if counts["timeout"] != 3 || counts["foreign"] != 2 {
		t.Errorf("the counts are %v", counts)
	}
	long := strings.Repeat("send a probe ", maxWhat) // which is cut
	for i, each := range []error{err, err, nil, err} {
		if got := r.Check([]string{"socket", "route"}[i%2], long, each); got != (each != nil) {
			t.Errorf("%v: %v", each, got)
		}
	}
	lines(5)
	if !strings.Contains(log.String(), "http://10.0.0.2/") || !strings.Contains(log.String(), "no power") {
		t.Errorf("the log is %s", log.String())
	}
	for n := range 2 * maxTold {
		r.Failed("timeout", fmt.Sprint(n), err)
	}
	lines(maxTold)
	r.room.SetBurst(2 * maxTold) // as if time had passed
	r.room.SetLimit(rate.Inf)
	r.Failed("timeout", strings.Repeat("x", 2*maxWhat), err)
	r.Failed("timeout", "one more", err)
	if lines(maxTold + 2); len(r.told) != 1 || counts["timeout"] != 3+2*maxTold+2 {
		t.Errorf("%d failures are remembered, and the counts are %v", len(r.told), counts)
	}
}
