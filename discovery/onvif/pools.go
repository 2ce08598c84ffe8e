package onvif

import (
	"slices"
	"time"

	"akri.sh/akri/internal/deadline"
)

// The pools of requests. Each has its own limit, so that cameras that do not answer take
// nothing from those that do.
const (
	// quickPool has cameras that have never answered, but may: new ones, and those whose
	// last request failed at once.
	quickPool = iota
	// slowPool has cameras that have never answered, and let their last request wait.
	slowPool
	// knownPool has cameras that have answered: their checks, and their properties.
	knownPool
	pools
)

// limits bound the requests under way of each pool.
var limits = [pools]int{quickPool: maxQuickRequests, slowPool: maxSlowRequests, knownPool: maxKnownRequests}

// plan sets when a camera is asked next. While a request is under way, its end decides.
func (t *tracker) plan(c *camera, when time.Time) {
	if c.began.IsZero() {
		c.due, t.next = when, deadline.Earliest(t.next, when)
	}
}

// begin returns requests that are due, as many as may be under way at the same time. Those
// that have waited for the longest time come first.
func (t *tracker) begin(now time.Time) []request {
	t.next = time.Time{}
	var waiting []*camera
	for _, c := range t.cameras {
		switch {
		case due(c.due, now):
			waiting = append(waiting, c)
		case c.began.IsZero():
			t.next = deadline.Earliest(t.next, c.due)
		}
	}
	slices.SortFunc(waiting, func(a, b *camera) int { return a.due.Compare(b.due) })
	var requests []request
	for _, c := range waiting {
		switch c.pool = quickPool; {
		case !c.found.IsZero():
			c.pool = knownPool
		case c.slow:
			c.pool = slowPool
		}
		if t.running[c.pool] >= limits[c.pool] || t.hosts[c.host] >= maxRequestsPerHost {
			continue // until a request ends
		}
		t.running[c.pool]++
		t.hosts[c.host]++
		c.began, c.due = now, time.Time{}
		check := !c.found.IsZero() && (c.suspicion > 0 || c.missed >= t.settings.Misses)
		requests = append(requests, request{key: c.key, check: check, spare: t.isSpare(c), reading: c.reading, camera: c})
	}
	return requests
}
