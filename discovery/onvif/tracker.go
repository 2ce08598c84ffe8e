package onvif

import (
	"maps"
	"net/netip"
	"time"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/onvif/details"
)

// tracker decides which cameras exist. It is told what happens, and answers which
// requests to make; it has no clock and no network.
//
// A camera appears when it has announced itself and has answered a request. It disappears
// when it has missed several probes, or has sent Bye, and does not answer requests either.
type tracker struct {
	settings *details.Details
	// failed counts a failure.
	failed func(reason string)
	// random returns a number in [0, 1), for jitter.
	random func() float64

	index
	// excludedUntil has the hosts in the details. If the filter for scopes excludes what one
	// announces, its URL is not guessed until then.
	excludedUntil map[netip.Addr]time.Time
	// changed means that the devices may differ from those returned last.
	changed bool
	// queue has the cameras that wait for their next request.
	queue queue
	// unasked counts the cameras whose first request has not ended.
	unasked int
}

func newTracker(settings *details.Details, failed func(string), random func() float64) *tracker {
	t := &tracker{
		settings: settings, failed: failed, random: random,
		index: newIndex(), excludedUntil: map[netip.Addr]time.Time{},
	}
	for _, host := range settings.Hosts() {
		t.excludedUntil[host.Unmap()] = time.Time{}
	}
	return t
}

// request is a request to make.
type request struct {
	key

	// check means that the only question is whether the camera is there.
	check bool
}

// outcome is the end of a request.
type outcome struct {
	request

	alive bool
	// uuid is set if the camera has said it.
	uuid  string
	facts facts
	// incomplete means that some questions have not been answered, and that they may be
	// the next time.
	incomplete bool
	// refused means that the camera has refused the credentials.
	refused bool
}

// add adds a camera, unless there are too many. It is asked at once.
func (t *tracker) add(now time.Time, from netip.Addr, k key) *camera {
	if len(t.cameras) >= maxCameras || len(t.byHost[k.host()]) >= maxCamerasPerHost {
		t.failed(failedCameras)
		return nil
	}
	c := &camera{key: k, from: from}
	t.insert(c)
	t.unasked++
	t.schedule(c, now)
	return c
}

func (t *tracker) remove(c *camera) {
	t.delete(c)
	t.queue.drop(c)
	if !c.asked {
		t.unasked--
	}
	t.changed = t.changed || !c.found.IsZero()
}

// byeDelays are the pauses between the checks after a Bye. A camera that reboots answers
// requests for some time.
var byeDelays = []time.Duration{time.Second, 3 * time.Second, 8 * time.Second}

// evaluated records that the time for answers to a probe is over.
func (t *tracker) evaluated(now time.Time) {
	for _, c := range t.cameras {
		if c.heard {
			c.heard = false
			continue
		}
		c.missed++
		switch {
		case c.missed == 1 && !c.found.IsZero():
			t.changed = t.changed || t.settings.ID == details.ByUUID
		case c.missed < t.settings.Misses || c.running:
		case c.found.IsZero():
			t.remove(c)
		default:
			t.schedule(c, now)
		}
	}
}

// schedule sets when a camera is asked next. While a request is under way, its end
// decides.
func (t *tracker) schedule(c *camera, when time.Time) {
	if c.running {
		return
	}
	t.queue.put(c, when)
}

// begin returns requests that are due, at most limit.
func (t *tracker) begin(now time.Time, limit int) []request {
	var requests []request
	for len(requests) < limit && len(t.queue) > 0 && !now.Before(t.queue.next()) {
		c := t.queue[0]
		t.queue.drop(c)
		c.running = true
		check := !c.found.IsZero() && (c.suspicion > 0 || c.missed >= t.settings.Misses)
		requests = append(requests, request{c.key, check})
	}
	return requests
}

// ended records the end of a request that begin has returned.
func (t *tracker) ended(now time.Time, o outcome) {
	c := t.cameras[o.key]
	if c == nil {
		return
	}
	c.running = false
	if !c.asked {
		c.asked = true
		t.unasked--
	}
	switch {
	case o.alive && o.check:
		t.checked(now, c)
	case o.alive:
		t.answered(now, c, o)
	case o.check && (c.suspicion > 0 || c.missed >= t.settings.Misses):
		t.remove(c)
	default:
		c.failures++
		t.schedule(c, now.Add(t.retryDelay(c)))
	}
}

// retryDelay is the pause after a request that was not answered.
func (t *tracker) retryDelay(c *camera) time.Duration {
	interval := t.settings.Interval()
	switch {
	case c.suspicion > 0 || c.missed >= t.settings.Misses && !c.found.IsZero():
		return 0 // the request was about something else: check
	case !c.found.IsZero() || c.listed || c.failures > 10:
		return interval
	}
	return min(minRetryDelay<<(c.failures-1), interval)
}

// checked records that something still answers at a camera's URL.
func (t *tracker) checked(now time.Time, c *camera) {
	if c.suspicion == 0 && t.replaced(c) {
		t.remove(c)
		return
	}
	c.missed, c.failures = 0, 0
	if c.suspicion > 0 && c.suspicion <= len(byeDelays) {
		t.schedule(c, now.Add(byeDelays[c.suspicion-1]))
		c.suspicion++
		return
	}
	c.suspicion = 0
	t.schedule(c, now.Add(t.jitter(recheckInterval)))
}

// replaced reports whether another device announces itself at the URL of a camera that
// does not any more. Some devices have another UUID each time they start.
func (t *tracker) replaced(c *camera) bool {
	for _, other := range t.byHost[c.host()] {
		if other.url == c.url && other.uuid != c.uuid && other.missed == 0 && !other.found.IsZero() && !other.listed {
			return true
		}
	}
	return false
}

// answered records what a camera has said about itself.
func (t *tracker) answered(now time.Time, c *camera, o outcome) {
	c.failures = 0
	if c.suspicion == 0 {
		c.missed = 0
	}
	if c.uuid == "" && !t.identify(now, c, o.uuid) {
		return
	}
	if c.found.IsZero() {
		c.found, t.changed = now, true
	}
	if !maps.Equal(c.facts, o.facts) {
		merged := maps.Clone(c.facts)
		if merged == nil {
			merged = facts{}
		}
		maps.Copy(merged, o.facts) // what a camera does not say this time has not changed
		t.changed = t.changed || !maps.Equal(c.facts, merged)
		c.facts = merged
	}
	switch {
	case c.suspicion > 0:
		t.schedule(c, now)
	case o.refused:
		t.schedule(c, now.Add(t.jitter(refusedInterval)))
	case o.incomplete:
		t.schedule(c, now.Add(t.jitter(t.settings.Interval())))
	default:
		t.schedule(c, now.Add(t.jitter(recheckInterval)))
	}
}

// identify gives a camera at a listed address the UUID that it has said. It removes the
// camera if it is known already, or filtered out.
func (t *tracker) identify(now time.Time, c *camera, uuid string) bool {
	t.remove(c)
	k := key{c.url, uuid}
	if uuid == "" || t.cameras[k] != nil || !admits(t.settings, uuid, nil) || now.Before(t.excludedUntil[c.from]) {
		return false
	}
	c.key = k
	t.insert(c)
	return true
}

// jitter returns a duration that differs by up to 10 %, so that many cameras and handlers
// spread.
func (t *tracker) jitter(d time.Duration) time.Duration {
	return d - d/10 + time.Duration(t.random()*float64(d/5))
}

// settled reports whether every camera has been asked at least once.
func (t *tracker) settled() bool { return t.unasked == 0 }

// devices returns the devices, sorted by id.
func (t *tracker) devices() []discovery.Device {
	t.changed = false
	cameras := make([]*camera, 0, len(t.cameras))
	for _, c := range t.cameras {
		if !c.found.IsZero() && c.uuid != "" {
			cameras = append(cameras, c)
		}
	}
	return devices(cameras, t.settings)
}
