package controller

import (
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/converge"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/problem"
)

// The back-off doubles until a pass has no problem that may heal. An API server that does not
// answer is reported after a while, and other problems at once.
func TestRetry(t *testing.T) {
	refused := &problem.Error{Reason: v0.ReasonRefused}
	rejected := &problem.Error{Reason: v0.ReasonApplyFailed, Retryable: true}
	noAnswer := &problem.Error{Reason: v0.ReasonServerUnavailable, Retryable: true, Unavailable: true}
	m := newTestMemory(t)
	cam := &pass{parent: ownership.Parent{UID: "cam"}}
	m.observe(t.Context(), cam.parent, nil)
	now := time.Now()
	for _, step := range []struct {
		after    time.Duration
		problems []*problem.Error
		wait     time.Duration
		shown    int
	}{
		{0, nil, 0, 0},
		{0, []*problem.Error{refused}, 0, 1},
		{0, []*problem.Error{refused, rejected}, converge.FirstRetry, 2},
		{0, []*problem.Error{rejected}, 2 * converge.FirstRetry, 1},
		{0, nil, 0, 0},
		{0, []*problem.Error{noAnswer}, converge.FirstRetry, 0},
		{unavailableDelay - 1, []*problem.Error{rejected, noAnswer}, 2 * converge.FirstRetry, 1},
		{1, []*problem.Error{rejected, noAnswer}, 4 * converge.FirstRetry, 2},
		{0, []*problem.Error{rejected}, 8 * converge.FirstRetry, 1}, // it has answered: the time starts again
		{0, []*problem.Error{noAnswer}, 16 * converge.FirstRetry, 0},
	} {
		now = now.Add(step.after)
		if wait, shown := m.retry(cam, step.problems, now); wait != step.wait || len(shown) != step.shown {
			t.Errorf("after %v: next pass after %v with %d problems; want %v, %d", step.problems, wait, len(shown), step.wait, step.shown)
		}
	}

	// Where many parents fail, they are not repeated more often together.
	for failing, want := range map[int]time.Duration{1: minMaxRetry, 25: minMaxRetry, 50: 2 * minMaxRetry, 1500: maxRetry} {
		m := newTestMemory(t)
		for i := range failing {
			parent := ownership.Parent{NamespacedName: types.NamespacedName{Name: strconv.Itoa(i)}, UID: "cam"}
			m.observe(t.Context(), parent, nil)
			m.retry(&pass{parent: parent}, []*problem.Error{rejected}, now)
		}
		first := &pass{parent: ownership.Parent{NamespacedName: types.NamespacedName{Name: "0"}, UID: "cam"}}
		var wait time.Duration
		for range 20 {
			wait, _ = m.retry(first, []*problem.Error{rejected}, now)
		}
		if wait != want {
			t.Errorf("with %d failing parents, the next pass is after %v, want %v", failing, wait, want)
		}
	}
}
