package events

import (
	"fmt"
	"testing"
	"time"
)

// write takes the pending series; all are written.
func (a *aggregate) write(now time.Time) (written []series) {
	for s, found := a.next(); found; s, found = a.next() {
		written = append(written, s)
		a.settle(s, s, now)
	}
	return written
}

func TestOneWritePerInterval(t *testing.T) {
	a, start := newAggregate(), time.Unix(1000, 0)
	k := key{Object{Name: "cam"}, "cam-0", "AllocationRefused"}
	written := 0
	for i := range 1201 { // twenty minutes
		now := start.Add(time.Duration(i) * time.Second)
		due, _ := a.add(k, fmt.Sprint(i), now)
		all := a.write(now)
		if due != (len(all) == 1) {
			t.Errorf("second %d: due is %v, but %d are written", i, due, len(all))
		}
		for _, s := range all {
			written++
			if s.count != i+1 || !s.first.Equal(start) || !s.last.Equal(now) || s.message != fmt.Sprint(i) {
				t.Errorf("after %d occurrences: %+v", i+1, s)
			}
		}
	}
	if written != 3 {
		t.Errorf("%d writes, want one at the beginning and one per interval", written)
	}
	other := k
	other.subject = "cam-1"
	if due, _ := a.add(other, "", start); !due {
		t.Error("the first Event about another slot is not due")
	}
}

// An Event that waits for its write, or whose write fails, counts further occurrences and
// comes again, after the others.
func TestPendingSeries(t *testing.T) {
	a, start := newAggregate(), time.Unix(1000, 0)
	for i, subject := range []string{"a", "b", "a"} {
		if due, _ := a.add(key{subject: subject}, "", start); due != (i < 2) {
			t.Errorf("occurrence %d, of %s: due is %v", i, subject, due)
		}
	}
	a.postpone(start)
	written := a.write(start)
	if len(written) != 2 || written[0].subject != "b" || written[1].subject != "a" || written[1].count != 2 {
		t.Fatalf("written %+v, want b, and a with two occurrences", written)
	}
	if written[0].due.Equal(written[1].due) {
		t.Error("two Events of one moment have the same name")
	}

	now := start.Add(Interval)
	if due, _ := a.add(key{subject: "a"}, "", now); !due {
		t.Fatal("the Event is not due after the interval")
	}
	for range 100 {
		a.postpone(now.Add(maxAge - time.Second))
	}
	if len(a.pending) != 1 {
		t.Fatal("a young Event was given up")
	}
	if a.postpone(now.Add(maxAge)); len(a.pending) != 0 {
		t.Error("an old Event is tried for ever")
	}
}

// Occurrences during a write are not lost, also if it begins the count again.
func TestOccurrencesDuringAWrite(t *testing.T) {
	a, start := newAggregate(), time.Unix(1000, 0)
	k := key{subject: "a"}
	for range 5 {
		a.add(k, "", start)
	}
	tried, _ := a.next()
	a.add(k, "", start)
	result := tried
	result.name, result.count = "a.1", 1
	a.settle(tried, result, start)
	if s := a.all[k]; s.count != 2 || s.name != "a.1" {
		t.Errorf("the series is %+v, want the one written and one more", s)
	}
}

func TestSeriesAreBounded(t *testing.T) {
	a, now := newAggregate(), time.Unix(1000, 0)
	refused := 0
	for i := range 2 * maxSeries {
		if _, counted := a.add(key{subject: fmt.Sprint(i)}, "", now); !counted {
			refused++
		}
	}
	if len(a.all) != maxSeries || len(a.pending) != maxSeries || refused != maxSeries {
		t.Errorf("%d series, %d pending, %d refused, want %d each", len(a.all), len(a.pending), refused, maxSeries)
	}
	a.write(now)
	if due, _ := a.add(key{subject: "late"}, "", now.Add(Interval)); !due || len(a.all) != 1 {
		t.Errorf("series that have ended use up the bound: %d", len(a.all))
	}
}
