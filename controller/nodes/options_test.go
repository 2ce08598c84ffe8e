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
		"off":   {"without a grace nothing else counts", Options{}, Options{DeadDelay: DefaultDeadDelay}},
		"usual": {"the defaults", Options{NotReadyGrace: time.Hour}, Options{time.Hour, DefaultGoneGrace, DefaultEmptyGrace, DefaultDeadDelay}},
		"short": {"who is in a hurry waits for nothing longer", Options{NotReadyGrace: time.Second}, Options{time.Second, time.Second, time.Second, DefaultDeadDelay}},
		"said":  {"what is said counts", Options{time.Second, time.Minute, time.Hour, time.Minute}, Options{time.Second, time.Minute, time.Hour, time.Minute}},
	} {
		if got, err := tc.have.complete(); err != nil || got != tc.want {
			t.Errorf("%s: %s: got %+v, %v, want %+v", name, tc.reason, got, err, tc.want)
		}
	}
	if _, err := (Options{NotReadyGrace: -1}).complete(); err == nil {
		t.Error("a negative grace is taken")
	}
}
