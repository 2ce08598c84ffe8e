package main

import (
	"math"
	"testing"
	"time"
)

func TestOven(t *testing.T) {
	start := time.Unix(0, 0)
	o := newOven(20, 180, 1, start)
	if r := o.read(start); r.temperature != 20 || r.setpoint != 180 || r.power != 1 || r.pieces != 0 {
		t.Errorf("at the beginning: %+v", r)
	}
	if r := o.read(start.Add(inertia)); math.Abs(r.temperature-(180-160/math.E)) > 1e-9 {
		t.Errorf("after one time constant, it has %v degrees", r.temperature)
	}
	// It is hot after 60 s * ln(160/5) = 208 s, and then needs 10 s for a piece.
	if r := o.read(start.Add(207 * time.Second)); r.pieces != 0 {
		t.Errorf("%d pieces before it is hot", r.pieces)
	}
	hot := o.read(start.Add(308 * time.Second))
	if hot.pieces != 10 || math.Abs(hot.temperature-180) > hotEnough || hot.power < 0.3 || hot.power > 0.6 {
		t.Errorf("when it is hot: %+v, want ten pieces and little power", hot)
	}
	if err := o.set(100, start.Add(310*time.Second)); err != nil {
		t.Fatal(err)
	}
	if r := o.read(start.Add(1000 * time.Second)); math.Abs(r.temperature-100) > 1 || r.setpoint != 100 {
		t.Errorf("after the setpoint was changed: %+v", r)
	}
	for _, degrees := range []float64{math.NaN(), math.Inf(1), -1, 1000} {
		if o.set(degrees, start) == nil {
			t.Errorf("%v degrees were accepted", degrees)
		}
	}
}
