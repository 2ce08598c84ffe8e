package nodes

import (
	"testing"
	"time"
)

func TestComplete(t *testing.T) {
	for name, tc := range map[string]struct {
		reason     string
		have, want Options
	}{
		"off":   {"without a grace period nothing else counts", Options{}, Options{StaleDelay: DefaultStaleDelay}},
		"usual": {"the defaults", Options{NotReadyGrace: time.Hour}, Options{time.Hour, DefaultGoneGrace, DefaultEmptyGrace, DefaultStaleDelay}},
		"short": {"a short grace period shortens the others", Options{NotReadyGrace: time.Second},
			Options{time.Second, time.Second, time.Second, DefaultStaleDelay}},
		"set": {"values that are set are kept", Options{time.Second, time.Minute, time.Hour, time.Minute},
			Options{time.Second, time.Minute, time.Hour, time.Minute}},
	} {
		if got, err := tc.have.complete(); err != nil || got != tc.want {
			t.Errorf("%s: %s: got %+v, %v, want %+v", name, tc.reason, got, err, tc.want)
		}
	}
	if _, err := (Options{NotReadyGrace: -1}).complete(); err == nil {
		t.Error("a negative grace period was accepted")
	}
}
