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
	h := &History{}
	h.apply(camera, "1", "")
	h.apply(camera, "1", "1")
	if !h.hasApplied("1") || h.hasApplied("2") {
		t.Errorf("it remembers %v", h.applied)
	}
	h.apply(camera, "2", "1")
	if h.hasApplied("1") || !h.hasApplied("2") {
		t.Errorf("it remembers %v after a replacement", h.applied)
	}
	if h.drop("2"); len(h.applied) != 0 {
		t.Errorf("it remembers %v after a deletion", h.applied)
	}
}

// Repairs are slowed down after a burst, for each object alone, until it is calm.
func TestDisputes(t *testing.T) {
	h, other := &History{}, inventory.Ref{Kind: "Service", Namespace: "ns", Name: "garden-cam"}
	for range Burst {
		if wait := h.wait(camera, noon); wait != 0 {
			t.Fatalf("must wait %v", wait)
		}
		h.about(camera, noon).repairs++
	}
	h.about(other, noon).repairs++
	for _, tc := range []struct {
		object inventory.Ref
		at     time.Duration
		want   time.Duration
	}{{camera, 0, interval}, {camera, time.Second, interval - time.Second}, {camera, interval, 0}, {other, 0, 0}} {
		if got := h.wait(tc.object, noon.Add(tc.at)); got != tc.want {
			t.Errorf("%s must wait %v after %v, want %v", tc.object, got, tc.at, tc.want)
		}
	}
	again := noon.Add(interval)
	h.about(camera, again).repairs++
	if got := h.wait(camera, again.Add(time.Second)); got != interval-time.Second {
		t.Errorf("must wait %v, want one repair at a time", got)
	}
	if over := h.disputes[camera].over(again.Add(time.Second)); over != Calm-time.Second {
		t.Errorf("it is over in %v", over)
	}
	h.calm(noon.Add(Calm))
	if len(h.disputes) != 1 || h.disputes[camera] == nil {
		t.Errorf("there are disputes about %v", h.disputes)
	}
	h.calm(again.Add(Calm))
	if wait := h.wait(camera, again.Add(Calm)); wait != 0 || len(h.disputes) != 0 {
		t.Errorf("a new repair must wait %v", wait)
	}
}

// Each replacement of a terminated Pod doubles the wait for the next one.
func TestReplacements(t *testing.T) {
	now, h := noon, &replacements{}
	expect := func(reason string, want time.Duration) {
		t.Helper()
		if got := h.wait(now); got != want {
			t.Errorf("%s: wait %v, want %v", reason, got, want)
		}
	}
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
		expect("each termination doubles the wait, to five minutes", want*time.Second)
		now = now.Add(want * time.Second / 2)
		expect("looking again does not prolong it", want*time.Second/2)
		now = now.Add(want * time.Second)
		expect("it is over", 0)
		h.done(now)
	}
	now = now.Add(healthyAfter)
	expect("ten healthy minutes make up for all", time.Second)
	h.done(now)
	expect("it terminates again", 2*time.Second)
	h.done(now) // another client deletes the terminated Pod
	h.done(now)
	expect("a Pod that another client removed counts, once", 4*time.Second)
}
