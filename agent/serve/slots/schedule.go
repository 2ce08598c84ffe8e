package slots

import (
	"container/heap"
	"time"
)

// schedule holds at most one time per resource: when a [Ticked] next affects it.
type schedule struct {
	alarms map[Resource]*alarm
	heap   alarms
}

type alarm struct {
	resource Resource
	at       time.Duration
	index    int
}

func newSchedule() schedule { return schedule{alarms: map[Resource]*alarm{}} }

// set replaces the time of a resource.
func (s *schedule) set(r Resource, at time.Duration, found bool) {
	a := s.alarms[r]
	switch {
	case !found && a != nil:
		heap.Remove(&s.heap, a.index)
		delete(s.alarms, r)
	case !found:
	case a == nil:
		a = &alarm{resource: r, at: at}
		s.alarms[r] = a
		heap.Push(&s.heap, a)
	case a.at != at:
		a.at = at
		heap.Fix(&s.heap, a.index)
	}
}

// next returns the earliest time.
func (s *schedule) next() (time.Duration, bool) {
	if len(s.heap) == 0 {
		return 0, false
	}
	return s.heap[0].at, true
}

// due removes and returns the resources whose time has come.
func (s *schedule) due(now time.Duration) []Resource {
	var due []Resource
	for len(s.heap) > 0 && s.heap[0].at <= now {
		due = append(due, s.heap[0].resource)
		s.set(s.heap[0].resource, 0, false)
	}
	return due
}

// alarms implements [heap.Interface].
type alarms []*alarm

func (h alarms) Len() int { return len(h) }
func (h alarms) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].resource.Name < h[j].resource.Name
}
func (h alarms) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements [heap.Interface].
func (h *alarms) Push(x any) {
	a := x.(*alarm)
	a.index = len(*h)
	*h = append(*h, a)
}

// Pop implements [heap.Interface].
func (h *alarms) Pop() any {
	old := *h
	a := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return a
}
