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

// turn is a request under way.
type turn struct {
	pool  int
	began time.Time
	host  string
}

// schedule is the requests that wait and those that are under way.
type schedule struct {
	waiting [pools]queue
	running [pools][]*turn // the oldest first
	hosts   map[string]int // requests under way to a host
}

// limits bound the requests under way of each pool.
var limits = [pools]int{quickPool: maxQuickRequests, slowPool: maxSlowRequests, knownPool: maxKnownRequests}

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
		for due(waiting.next(), now) && s.free(pool, now) {
			c := (*waiting)[0]
			if s.hosts[c.host] >= maxRequestsPerHost {
				waiting.put(c, now.Add(busyHostPause))
				continue
			}
			waiting.drop(c)
			begun := &turn{pool: pool, began: now, host: c.host}
			s.running[pool] = append(s.running[pool], begun)
			s.hosts[c.host]++
			return c, begun
		}
	}
	return nil, nil
}

// free reports whether another request of a pool may begin. A request that is no longer
// quick makes place for the next one.
func (s *schedule) free(pool int, now time.Time) bool {
	if len(s.running[pool]) < limits[pool] {
		return true
	}
	if at := s.slows(pool); !due(at, now) {
		return false
	}
	oldest := s.running[pool][0]
	oldest.pool = slowPool
	s.running[pool] = s.running[pool][1:]
	s.running[slowPool] = append(s.running[slowPool], oldest)
	return true
}

// slows returns when the oldest request of a full pool makes place; zero for when it ends.
func (s *schedule) slows(pool int) time.Time {
	if pool != quickPool || len(s.running[slowPool]) >= maxHangingRequests {
		return time.Time{}
	}
	return s.running[pool][0].began.Add(slowRequest)
}

// end records the end of a request.
func (s *schedule) end(ended *turn) {
	running := s.running[ended.pool]
	if at := slices.Index(running, ended); at >= 0 {
		s.running[ended.pool] = slices.Delete(running, at, at+1)
	}
	if s.hosts[ended.host]--; s.hosts[ended.host] == 0 {
		delete(s.hosts, ended.host)
	}
}

// next returns when take may have something; zero if only the end of a request can change
// that.
func (s *schedule) next() time.Time {
	var soonest time.Time
	for pool := range s.waiting {
		when := s.waiting[pool].next()
		if len(s.running[pool]) >= limits[pool] && !when.IsZero() {
			slows := s.slows(pool)
			if slows.IsZero() {
				continue
			}
			when = deadline.Latest(when, slows)
		}
		if soonest.IsZero() || !when.IsZero() && when.Before(soonest) {
			soonest = when
		}
	}
	return soonest
}
