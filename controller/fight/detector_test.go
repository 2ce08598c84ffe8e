package fight

import (
	"testing"
	"time"

	"akri.sh/akri/controller/inventory"
)

var (
	service = inventory.Ref{Kind: "Service", Namespace: "ns", Name: "door-cam"}
	noon    = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
)

func TestAFewRepairsAreNoFight(t *testing.T) {
	d := NewDetector()
	now := noon
	for range Many - 1 {
		if wait := d.Repair(service, now); wait != 0 {
			t.Fatalf("has to wait %v", wait)
		}
		now = now.Add(time.Second)
	}
	if _, goes := d.Goes(service, now); goes {
		t.Error("a fight is seen")
	}
	d.Repair(service, now)
	if _, goes := d.Goes(service, now); !goes {
		t.Error("no fight is seen")
	}
}

func TestAFightIsSlowedAndEnds(t *testing.T) {
	d := NewDetector()
	for range Burst {
		d.Repair(service, noon)
	}
	if wait := d.Repair(service, noon.Add(time.Second)); wait != Every-time.Second {
		t.Fatalf("has to wait %v", wait)
	}
	if wait := d.Repair(service, noon.Add(Every)); wait != 0 {
		t.Fatalf("has to wait %v after %v", wait, Every)
	}
	if wait := d.Repair(service, noon.Add(Every)); wait != Every {
		t.Fatalf("has to wait %v, want one repair at a time", wait)
	}
	fight, goes := d.Goes(service, noon.Add(Every+time.Second))
	if !goes || fight.Repairs != Burst+1 || fight.Since != Every+time.Second || fight.Over != Calm-time.Second {
		t.Errorf("%v, %+v", goes, fight)
	}
	if _, goes := d.Goes(service, noon.Add(Every+Calm)); goes {
		t.Error("it never ends")
	}
	if wait := d.Repair(service, noon.Add(Every+Calm)); wait != 0 {
		t.Errorf("a new repair has to wait %v", wait)
	}
}

func TestObjectsAreToldApartAndForgotten(t *testing.T) {
	d := NewDetector()
	for range Burst {
		d.Repair(service, noon)
	}
	other := service
	other.Name = "garden-cam"
	if wait := d.Repair(other, noon); wait != 0 {
		t.Errorf("another object has to wait %v", wait)
	}
	d.Repair(other, noon.Add(2*Calm))
	if len(d.objects) != 1 {
		t.Errorf("%d objects are remembered, want 1", len(d.objects))
	}
}
