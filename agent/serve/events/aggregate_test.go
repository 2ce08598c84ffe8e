package events

import (
	"fmt"
	"testing"
	"time"
)

func TestOneWritePerInterval(t *testing.T) {
	a, start := newAggregate(), time.Unix(1000, 0)
	k := key{Object{Name: "cam"}, "cam-0", "AllocationRefused"}
	written := 0
	for i := range 1201 { // twenty minutes
		now := start.Add(time.Duration(i) * time.Second)
		if s := a.add(k, now); s != nil {
			written++
			s.written = now
			if want := i + 1; s.count != want || !s.first.Equal(start) || !s.last.Equal(now) {
				t.Errorf("after %d occurrences: %+v", want, s)
			}
		}
	}
	if written != 3 {
		t.Errorf("%d writes, want one at the beginning and one per interval", written)
	}
	other := k
	other.subject = "cam-1"
	if a.add(other, start) == nil {
		t.Error("the first Event about another slot is not due")
	}
}

func TestSeriesAreBounded(t *testing.T) {
	a, now := newAggregate(), time.Unix(1000, 0)
	for i := range 2 * maxSeries {
		a.add(key{subject: fmt.Sprint(i)}, now)
	}
	if len(a.all) != maxSeries {
		t.Errorf("%d series, want %d", len(a.all), maxSeries)
	}
	if a.add(key{subject: "late"}, now.Add(Interval)) == nil || len(a.all) != 1 {
		t.Errorf("series that have ended use up the bound: %d", len(a.all))
	}
}
