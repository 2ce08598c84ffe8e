package converge

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestPodBackoff(t *testing.T) {
	const us types.UID = "instance"
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	b := newPodBackoff()
	expect := func(reason string, want time.Duration) {
		t.Helper()
		if got := b.wait(us, now); got != want {
			t.Errorf("%s: wait %v, want %v", reason, got, want)
		}
	}
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
		expect("each termination doubles the wait, to five minutes", want*time.Second)
		now = now.Add(want * time.Second / 2)
		expect("looking again does not prolong it", want*time.Second/2)
		now = now.Add(want * time.Second)
		expect("it is over", 0)
		b.replaced(us, now)
	}
	now = now.Add(healthyAfter)
	expect("ten healthy minutes make up for all", time.Second)

	b.replaced(us, now)
	expect("it terminates again", 2*time.Second)
	b.none(us, now) // another client deletes the terminated Pod
	b.none(us, now)
	expect("a Pod that another client removed counts, once", 4*time.Second)

	b.forget(us)
	expect("a new life", time.Second)
}
