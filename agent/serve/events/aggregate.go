package events

import "time"

const (
	// Interval is the shortest time between two writes of the same Event.
	Interval = 10 * time.Minute
	// maxSeries bounds the memory: further series are dropped until others have
	// ended.
	maxSeries = 1000
	// maxAge is how long an Event that cannot be written is tried. API servers keep
	// Events for an hour by default.
	maxAge = time.Hour
)

// key identifies a series of equal Events.
type key struct {
	object  Object
	subject string
	reason  string
}

// series counts the occurrences of an Event.
type series struct {
	key
	name    string // of the Event in the API server; "" before it was created
	message string // of the last occurrence
	first   time.Time
	last    time.Time
	count   int
	// due is when the pending write became due; zero if none is pending.
	due time.Time
	// settled is when the Event was last written or given up; zero if it never was.
	settled time.Time
}

// aggregate counts Events and decides which are due. It is pure.
type aggregate struct {
	all map[key]*series
	// pending are the series to write, in this order.
	pending []*series
	latest  time.Time // due of the series that became due last
}

func newAggregate() *aggregate { return &aggregate{all: map[key]*series{}} }

// add counts an occurrence. It reports whether a write has become due, and whether there
// was room for the series.
func (a *aggregate) add(k key, message string, now time.Time) (due, counted bool) {
	s := a.all[k]
	if s == nil {
		if len(a.all) >= maxSeries {
			a.forget(now)
		}
		if len(a.all) >= maxSeries {
			return false, false
		}
		s = &series{key: k, first: now}
		a.all[k] = s
	}
	s.count++
	s.last, s.message = now, message
	if !s.due.IsZero() || !s.settled.IsZero() && now.Sub(s.settled) < Interval {
		return false, true
	}
	if !now.After(a.latest) { // the time is part of the Event's name
		now = a.latest.Add(1)
	}
	s.due, a.latest = now, now
	a.pending = append(a.pending, s)
	return true, true
}

// next returns the series to write next, if there is one.
func (a *aggregate) next() (series, bool) {
	if len(a.pending) == 0 {
		return series{}, false
	}
	return *a.pending[0], true
}

// settle ends the pending write of the next series. tried is the series as next returned
// it, result as it was written; the same if it was not.
func (a *aggregate) settle(tried, result series, now time.Time) {
	s := a.pending[0]
	a.pending = a.pending[1:]
	s.name, s.first, s.count = result.name, result.first, s.count-tried.count+result.count
	s.due, s.settled = time.Time{}, now
}

// postpone puts the next series, which could not be written, behind the others. It gives
// the series up when it is too old.
func (a *aggregate) postpone(now time.Time) {
	s := a.pending[0]
	a.pending = a.pending[1:]
	if now.Sub(s.due) < maxAge {
		a.pending = append(a.pending, s)
		return
	}
	s.due, s.settled = time.Time{}, now
}

// forget drops the series that have ended.
func (a *aggregate) forget(now time.Time) {
	for k, s := range a.all {
		if s.due.IsZero() && now.Sub(s.last) >= Interval {
			delete(a.all, k)
		}
	}
}
