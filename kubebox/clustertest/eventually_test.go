package clustertest_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"akri.sh/akri/kubebox/clustertest"
)

// recorder is a test that records its failure.
type recorder struct {
	testing.TB
	failure string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, arguments ...any) {
	r.failure = fmt.Sprintf(format, arguments...)
	panic(r)
}

func TestEventually(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		took := clustertest.Eventually(t, time.Minute, "the third second", func() string {
			if time.Since(began) < 3*time.Second {
				return "not yet"
			}
			return ""
		})
		if took < 3*time.Second || took > 4*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestEventuallyTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{TB: t}
		defer func() {
			if recover() != r {
				t.Error("the test has not failed")
			}
			if want := "the device: timed out after 1m0s: it is missing"; r.failure != want {
				t.Errorf("the failure is %q, want %q", r.failure, want)
			}
		}()
		clustertest.Eventually(r, time.Minute, "the device", func() string { return "it is missing" })
	})
}
