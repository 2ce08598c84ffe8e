package onvif

import (
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

// turn is a request under way.
type turn struct {
	pool  int
	began time.Time
	host  string
}

// schedule is the requests that wait and those that are under way.
type schedule struct {
	waiting [pools]queue
	running [pools]int
	hosts   map[string]int // requests under way to a host
}

// put sets when a camera is asked next.
func (s *schedule) put(c *camera, due time.Time) {
	s.drop(c)
	switch {
	case !c.found.IsZero():
		c.pool = knownPool
	case c.slow:
		c.pool = slowPool
	default:
		c.pool = quickPool
	}
	s.waiting[c.pool].put(c, due)
}

func (s *schedule) drop(c *camera) { s.waiting[c.pool].drop(c) }

// take returns a camera that is due and may be asked now, with its turn; nil if there is
// none.
func (s *schedule) take(now time.Time) (*camera, *turn) {
	for pool := range s.waiting {
		waiting := &s.waiting[pool]
		for s.running[pool] < limits[pool] && due(waiting.next(), now) {
			c := (*waiting)[0]
			if s.hosts[c.host] >= maxRequestsPerHost {
				waiting.put(c, now.Add(busyHostPause))
				continue
			}
			waiting.drop(c)
			s.running[pool]++
			s.hosts[c.host]++
			return c, &turn{pool: pool, began: now, host: c.host}
		}
	}
	return nil, nil
}

// end records the end of a request.
func (s *schedule) end(ended *turn) {
	s.running[ended.pool]--
	if s.hosts[ended.host]--; s.hosts[ended.host] == 0 {
		delete(s.hosts, ended.host)
	}
}

// next returns when take may have something; zero if only the end of a request can change
// that.
func (s *schedule) next() time.Time {
	var soonest time.Time
	for pool := range s.waiting {
		if s.running[pool] < limits[pool] {
			soonest = deadline.Earliest(soonest, s.waiting[pool].next())
		}
	}
	return soonest
}
