package converge

import (
	"testing"
	"time"

	"akri.sh/akri/controller/inventory"
)

var (
	noon   = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	camera = inventory.Ref{Kind: "Service", Namespace: "ns", Name: "door-cam"}
)

// Objects are remembered until they are deleted. One that others delete again and again
// takes the place of the former one.
func TestAppliedObjects(t *testing.T) {
	r := &History{}
	r.apply(camera, "1", "")
	r.apply(camera, "1", "1")
	if !r.hasApplied("1") || r.hasApplied("2") {
		t.Errorf("it remembers %v", r.applied)
	}
	r.apply(camera, "2", "1")
	if r.hasApplied("1") || !r.hasApplied("2") {
		t.Errorf("it remembers %v after a replacement", r.applied)
	}
	if r.drop("2"); len(r.applied) != 0 {
		t.Errorf("it remembers %v after a deletion", r.applied)
	}
}

// Repairs are slowed down after a burst, for each object alone, until it is calm.
func TestDisputes(t *testing.T) {
	r, other := &History{}, inventory.Ref{Kind: "Service", Namespace: "ns", Name: "garden-cam"}
	for range Burst {
		if wait := r.wait(camera, noon); wait != 0 {
			t.Fatalf("must wait %v", wait)
		}
		r.about(camera, noon).repairs++
	}
	r.about(other, noon).repairs++
	for _, tc := range []struct {
		object inventory.Ref
		at     time.Duration
		want   time.Duration
	}{{camera, 0, interval}, {camera, time.Second, interval - time.Second}, {camera, interval, 0}, {other, 0, 0}} {
		if got := r.wait(tc.object, noon.Add(tc.at)); got != tc.want {
			t.Errorf("%s must wait %v after %v, want %v", tc.object, got, tc.at, tc.want)
		}
	}
	again := noon.Add(interval)
	r.about(camera, again).repairs++
	if got := r.wait(camera, again.Add(time.Second)); got != interval-time.Second {
		t.Errorf("must wait %v, want one repair at a time", got)
	}
	if over := r.disputes[camera].over(again.Add(time.Second)); over != Calm-time.Second {
		t.Errorf("it is over in %v", over)
	}
	r.calm(noon.Add(Calm))
	if len(r.disputes) != 1 || r.disputes[camera] == nil {
		t.Errorf("there are disputes about %v", r.disputes)
	}
	r.calm(again.Add(Calm))
	if wait := r.wait(camera, again.Add(Calm)); wait != 0 || len(r.disputes) != 0 {
		t.Errorf("a new repair must wait %v", wait)
	}
}

// Each replacement of a terminated Pod doubles the wait for the next one.
func TestReplacements(t *testing.T) {
	now, r := noon, &replacements{}
	expect := func(reason string, want time.Duration) {
		t.Helper()
		if got := r.wait(now); got != want {
			t.Errorf("%s: wait %v, want %v", reason, got, want)
		}
	}
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
		expect("each termination doubles the wait, to five minutes", want*time.Second)
		now = now.Add(want * time.Second / 2)
		expect("looking again does not prolong it", want*time.Second/2)
		now = now.Add(want * time.Second)
		expect("it is over", 0)
		r.done(now)
	}
	now = now.Add(healthyAfter)
	expect("ten healthy minutes make up for all", time.Second)
	r.done(now)
	expect("it terminates again", 2*time.Second)
	r.done(now) // another client deletes the terminated Pod
	r.done(now)
	expect("a Pod that another client removed counts, once", 4*time.Second)
}
