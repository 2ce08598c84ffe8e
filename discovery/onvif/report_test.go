package onvif

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// TestReporter checks what is counted, and what is in the log.
func TestReporter(t *testing.T) {
	var log bytes.Buffer
	counts := map[string]int{}
	r := newReporter(func(reason string) { counts[reason]++ }, slog.New(slog.NewTextHandler(&log, nil)))
	lines := func(want int) {
		t.Helper()
		if got := strings.Count(log.String(), "\n"); got != want {
			t.Errorf("%d lines in the log, want %d:\n%s", got, want, log.String())
		}
	}
	err := errors.New("no power")
	for range 3 {
		r.failed(failedTimeout, "http://10.0.0.1/", err)
		r.once(failedForeign, "http://10.0.0.1/", err)
		r.once(failedForeign, "http://10.0.0.2/", err)
	}
	lines(3)
	if counts[failedTimeout] != 3 || counts[failedForeign] != 2 {
		t.Errorf("the counts are %v", counts)
	}
	for _, each := range []error{err, err, nil, err} {
		if got := r.check("send a probe", each); got != (each != nil) {
			t.Errorf("%v: %v", each, got)
		}
	}
	lines(5)
	if !strings.Contains(log.String(), "http://10.0.0.2/") || !strings.Contains(log.String(), "no power") {
		t.Errorf("the log is %s", log.String())
	}
	for n := range 2 * maxToldFailures {
		r.failed(failedTimeout, fmt.Sprint(n), err)
	}
	lines(maxToldFailures + 1) // one of them was forgotten
	if len(r.told) > maxToldFailures {
		t.Errorf("%d failures are remembered", len(r.told))
	}
}
