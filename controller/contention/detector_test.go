package contention

import (
	"testing"
	"time"

	"akri.sh/akri/controller/inventory"
)

var (
	service = Object{Parent: "cam", Ref: inventory.Ref{Kind: "Service", Namespace: "ns", Name: "door-cam"}}
	noon    = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
)

// repair makes a repair that succeeds, if it may be made.
func (d *Detector) repair(object Object, now time.Time) time.Duration {
	wait := d.Wait(object, now)
	if wait == 0 {
		d.Repaired(object, now)
	}
	return wait
}

func TestAFewRepairsAreNoContention(t *testing.T) {
	d := NewDetector()
	now := noon
	for range MinRepairs - 1 {
		if wait := d.repair(service, now); wait != 0 {
			t.Fatalf("must wait %v", wait)
		}
		now = now.Add(time.Second)
	}
	if _, found := d.Contended(service, now); found {
		t.Error("contention is reported")
	}
	d.repair(service, now)
	if _, found := d.Contended(service, now); !found {
		t.Error("no contention is reported")
	}
}

// What was refused was not repaired, however often it was tried.
func TestAttemptsAreNoRepairs(t *testing.T) {
	d := NewDetector()
	d.repair(service, noon)
	for range 2 * Burst {
		if wait := d.Wait(service, noon); wait != 0 {
			t.Fatalf("must wait %v", wait)
		}
	}
	if _, found := d.Contended(service, noon); found {
		t.Error("contention is reported after one repair")
	}
}

func TestContentionIsSlowedAndEnds(t *testing.T) {
	d := NewDetector()
	for range Burst {
		d.repair(service, noon)
	}
	if wait := d.repair(service, noon.Add(time.Second)); wait != interval-time.Second {
		t.Fatalf("must wait %v", wait)
	}
	if wait := d.repair(service, noon.Add(interval)); wait != 0 {
		t.Fatalf("must wait %v after %v", wait, interval)
	}
	if wait := d.repair(service, noon.Add(interval)); wait != interval {
		t.Fatalf("must wait %v, want one repair at a time", wait)
	}
	got, found := d.Contended(service, noon.Add(interval+time.Second))
	if !found || got.Over != Calm-time.Second {
		t.Errorf("%v, %+v", found, got)
	}
	if _, found := d.Contended(service, noon.Add(interval+Calm)); found {
		t.Error("contention does not end")
	}
	if wait := d.repair(service, noon.Add(interval+Calm)); wait != 0 {
		t.Errorf("a new repair must wait %v", wait)
	}
}

func TestObjectsAreSeparateAndForgotten(t *testing.T) {
	d := NewDetector()
	for range Burst {
		d.repair(service, noon)
	}
	other := service
	other.Name = "garden-cam"
	if wait := d.repair(other, noon); wait != 0 {
		t.Errorf("another object must wait %v", wait)
	}
	d.repair(other, noon.Add(2*Calm))
	if len(d.objects) != 1 {
		t.Errorf("%d objects have an entry, want 1", len(d.objects))
	}
}

func TestForget(t *testing.T) {
	d := NewDetector()
	other := service
	other.Parent = "door"
	for range MinRepairs {
		d.repair(service, noon)
		d.repair(other, noon)
	}
	d.Forget(service.Parent)
	if _, found := d.Contended(service, noon); found {
		t.Error("the objects of a forgotten parent still have entries")
	}
	if _, found := d.Contended(other, noon); !found {
		t.Error("another parent's objects were forgotten")
	}
}
