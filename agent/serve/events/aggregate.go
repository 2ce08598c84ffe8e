package events

import "time"

const (
	// Interval is the shortest time between two writes of the same Event.
	Interval = 10 * time.Minute
	// maxSeries bounds the memory: further series are dropped until others have
	// ended.
	maxSeries = 1000
)

// key identifies a series of equal Events.
type key struct {
	object  Object
	subject string
	reason  string
}

// series counts the occurrences of an Event.
type series struct {
	name  string // of the Event in the API server; "" before it was created
	first time.Time
	last  time.Time
	count int
	// written is when the Event was last written or tried.
	written time.Time
}

// aggregate counts Events and decides which are due. It is pure.
type aggregate struct{ all map[key]*series }

func newAggregate() *aggregate { return &aggregate{map[key]*series{}} }

// add counts an occurrence. It returns the series if the Event is due, and nil if it
// only counts.
func (a *aggregate) add(k key, now time.Time) *series {
	s := a.all[k]
	if s == nil {
		if len(a.all) >= maxSeries {
			a.forget(now)
		}
		if len(a.all) >= maxSeries {
			return nil
		}
		s = &series{first: now}
		a.all[k] = s
	}
	s.count++
	s.last = now
	if !s.written.IsZero() && now.Sub(s.written) < Interval {
		return nil
	}
	return s
}

// forget drops the series that have ended.
func (a *aggregate) forget(now time.Time) {
	for k, s := range a.all {
		if now.Sub(s.last) >= Interval {
			delete(a.all, k)
		}
	}
}
