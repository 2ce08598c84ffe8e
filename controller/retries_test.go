package controller

import (
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/converge"
	"akri.sh/akri/controller/problem"
)

var (
	refused    = &problem.Error{Reason: v0.ReasonRefused}
	failingCam = types.UID("cam")
	rejected   = &problem.Error{Reason: v0.ReasonApplyFailed, Retryable: true}
	noAnswer   = &problem.Error{Reason: v0.ReasonServerUnavailable, Retryable: true, Unavailable: true}
)

// The back-off of problems that may heal doubles with each pass until one has none.
func TestRetryBackOff(t *testing.T) {
	r, now := newRetries(), time.Now()
	next := func(want time.Duration, problems ...*problem.Error) {
		t.Helper()
		if wait, shown := r.record(failingCam, problems, now); wait != want || len(shown) != len(problems) {
			t.Errorf("next pass after %v with %d problems, want %v with %d", wait, len(shown), want, len(problems))
		}
	}
	next(0)
	next(0, refused)
	for range 2 {
		next(converge.FirstRetry, refused, rejected)
		next(2*converge.FirstRetry, rejected)
		for range 20 {
			r.record(failingCam, []*problem.Error{rejected}, now)
		}
		next(minMaxRetry, rejected)
		next(0)
		if r.len() != 0 {
			t.Error("a parent without problems is remembered")
		}
	}
}

// What is refused is repeated soon, so that it is applied soon once it is not. Where many
// parents fail, together they are not repeated more often.
func TestLongestBackOff(t *testing.T) {
	for failing, want := range map[int]time.Duration{1: minMaxRetry, 25: minMaxRetry, 50: 2 * minMaxRetry, 5000: maxRetry} {
		r, now := newRetries(), time.Now()
		var wait time.Duration
		for i := range failing {
			r.record(types.UID(strconv.Itoa(i)), []*problem.Error{rejected}, now)
		}
		for range 20 {
			wait, _ = r.record("0", []*problem.Error{rejected}, now)
		}
		if wait != want {
			t.Errorf("with %d failing parents, the next pass is after %v, want %v", failing, wait, want)
		}
	}
}

// An API server that does not answer is reported after a while, and other problems at
// once.
func TestUnavailableServerIsReportedLater(t *testing.T) {
	r, now := newRetries(), time.Now()
	shown := func(want int, problems ...*problem.Error) {
		t.Helper()
		wait, got := r.record(failingCam, problems, now)
		if len(got) != want {
			t.Errorf("%d problems are reported, want %d", len(got), want)
		}
		if wait > maxUnavailableRetry {
			t.Errorf("next pass after %v, want at most %v", wait, maxUnavailableRetry)
		}
	}
	for range 2 {
		shown(0, noAnswer)
		now = now.Add(unavailableDelay - 1)
		shown(1, rejected, noAnswer)
		now = now.Add(1)
		shown(2, rejected, noAnswer)
		if _, got := r.record(failingCam, []*problem.Error{rejected}, now); len(got) != 1 { // it has answered: the time starts again
			t.Errorf("%d problems are reported, want the one", len(got))
		}
	}
}
