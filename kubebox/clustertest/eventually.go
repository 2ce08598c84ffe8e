package clustertest

import (
	"testing"
	"time"
)

// pollInterval is the pause between two checks of [Eventually].
const pollInterval = 30 * time.Millisecond

// Eventually calls check until it returns "", and returns how long that took. If check
// still complains after the time limit, the test fails with the last complaint.
func Eventually(t testing.TB, limit time.Duration, what string, check func() string) time.Duration {
	t.Helper()
	for began := time.Now(); ; time.Sleep(pollInterval) {
		complaint := check()
		took := time.Since(began)
		if complaint == "" {
			return took
		}
		if took > limit {
			t.Fatalf("%s: timed out after %v: %s", what, limit, complaint)
		}
	}
}
