package onvif

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/monitor"
	"akri.sh/akri/discovery/onvif/details"
)

// tracker decides which cameras exist. It is told what happens, and answers which
// requests to make; it has no clock and no network.
//
// A camera appears when it has announced itself and has answered a request. It disappears
// when it has missed several probes, or has sent Bye, and does not answer requests either.
type tracker struct {
	settings *details.Details
	*monitor.Reporter

	// random returns a number in [0, 1), for jitter.
	random func() float64

	cameras        map[key]*camera
	byHost, byUUID map[string][]*camera
	// changed means that the devices may differ from those returned last.
	changed bool
	// silent are the cameras that have been asked and have never answered.
	silent map[*camera]bool
	// running and hosts count the requests under way, of a pool and to a host.
	running [pools]int
	hosts   map[string]int
	// next is when begin may have something; zero if only the end of a request can change
	// that.
	next time.Time
}

func newTracker(settings *details.Details, failures *monitor.Reporter, random func() float64) *tracker {
	return &tracker{
		settings: settings, Reporter: failures, random: random,
		cameras: map[key]*camera{}, byHost: map[string][]*camera{}, byUUID: map[string][]*camera{},
		silent: map[*camera]bool{}, hosts: map[string]int{},
	}
}

// request is a request to make.
type request struct {
	key

	// check means that the only question is whether the camera is there.
	check bool
	// spare means that the device has another URL at which it has answered.
	spare bool
	// reading is the one of the camera's clock to try first.
	reading int
	camera  *camera // which only the tracker uses
}

// outcome is the end of a request.
type outcome struct {
	request

	alive bool
	// uuid is set if the camera has said it.
	uuid  string
	facts facts
	// scopes are set if it was asked for its UUID, and the Configuration has a filter for them.
	scopes []string
	// incomplete means that some questions have not been answered, and that they may be
	// the next time.
	incomplete bool
	// refused means that the camera has refused the credentials.
	refused bool
}

// add adds a camera, unless there are too many. It is asked at once.
func (t *tracker) add(now time.Time, from netip.Addr, k key, written string) *camera {
	host := k.host()
	if !t.makeRoom(host) {
		return nil
	}
	c := &camera{key: k, written: written, host: host, from: from}
	t.insert(c)
	t.plan(c, now)
	return c
}

// makeRoom reports whether another camera of a host can be added. If there are too many, it
// removes one that has been asked and did not answer: anybody can announce such cameras,
// and if it exists, it is added again.
func (t *tracker) makeRoom(host string) bool {
	crowd := maps.Keys(t.silent)
	switch ofHost := t.byHost[host]; {
	case len(ofHost) >= maxCamerasPerHost:
		crowd = slices.Values(ofHost)
	case len(t.cameras) < maxCameras:
		return true
	}
	t.Failed(failedCameras, "all cameras", fmt.Errorf("%d cameras, or %d of one host", maxCameras, maxCamerasPerHost))
	for c := range crowd {
		if t.silent[c] {
			t.remove(c)
			return true
		}
	}
	return false
}

func (t *tracker) remove(c *camera) {
	t.delete(c)
	delete(t.silent, c)
	t.changed = t.changed || !c.found.IsZero()
}

// byeDelays are the pauses between the checks after a Bye. A camera that reboots answers
// requests for some time.
var byeDelays = []time.Duration{time.Second, 3 * time.Second, 8 * time.Second}

// evaluated records that the time for answers to a probe is over.
func (t *tracker) evaluated(now time.Time) {
	for _, c := range t.cameras {
		if c.heard {
			continue
		}
		if c.missed++; c.missed == t.settings.Misses && !c.found.IsZero() {
			t.prefer(now, c)
		}
	}
	for _, c := range t.cameras {
		c.heard = false
		switch {
		case c.missed < t.settings.Misses || !c.began.IsZero():
		case c.found.IsZero():
			t.remove(c)
		default:
			t.plan(c, now)
		}
	}
}

// prefer prefers the other URLs of a device to one that is no longer announced, if it has
// any that is. It is only then that the properties of a device whose id is its UUID change.
func (t *tracker) prefer(now time.Time, to *camera) {
	for _, other := range t.byUUID[to.uuid] {
		if other.heard && !other.found.IsZero() {
			to.found = now
			t.changed = t.changed || t.settings.ID != details.ByURL
			return
		}
	}
}

// ended records the end of a request that begin has returned.
func (t *tracker) ended(now time.Time, o outcome) {
	c := o.camera
	c.slow, c.asked = !o.alive && now.Sub(c.began) >= slowRequest, true
	c.began, t.next = time.Time{}, now
	t.running[c.pool]--
	if t.hosts[c.host]--; t.hosts[c.host] == 0 {
		delete(t.hosts, c.host)
	}
	if t.cameras[o.key] != c { // removed, and perhaps added again
		return
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
		if c.found.IsZero() {
			t.silent[c] = true
		}
		t.plan(c, now.Add(t.retryDelay(c)))
	}
}

// retryDelay is the pause after a request that was not answered.
func (t *tracker) retryDelay(c *camera) time.Duration {
	interval, doublings := t.settings.Interval(), c.failures
	if !c.slow {
		doublings -= quickRetries
	}
	switch {
	case c.suspicion > 0 || c.missed >= t.settings.Misses && !c.found.IsZero():
		return 0 // the request was about something else: check
	case !c.found.IsZero() || c.listed:
		return interval
	}
	return backOff(minRetryDelay, doublings, interval)
}

// backOff returns a delay that is doubled some times, at most a limit.
func backOff(delay time.Duration, doublings int, limit time.Duration) time.Duration {
	for ; doublings > 0 && delay < limit; doublings-- {
		delay *= 2
	}
	return min(delay, limit)
}

// checked records that something still answers at a camera's URL.
func (t *tracker) checked(now time.Time, c *camera) {
	if c.suspicion == 0 && t.replaced(c) {
		t.remove(c)
		return
	}
	c.missed, c.failures = 0, 0
	if c.suspicion > 0 && c.suspicion <= len(byeDelays) {
		t.plan(c, now.Add(byeDelays[c.suspicion-1]))
		c.suspicion++
		return
	}
	c.suspicion = 0
	t.plan(c, now.Add(t.jitter(recheckInterval)))
}

// replaced reports whether another device announces itself at the URL of a camera that
// does not any more. Some devices have another UUID each time they start.
func (t *tracker) replaced(c *camera) bool {
	for _, other := range t.byHost[c.host] {
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
	if c.uuid == "" && !t.identify(c, o) {
		return
	}
	c.reading = o.reading
	if c.found.IsZero() {
		c.found, t.changed = now, true
		delete(t.silent, c)
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
		t.plan(c, now)
	case o.refused:
		t.plan(c, now.Add(t.jitter(refusedInterval)))
	case o.incomplete:
		interval := t.settings.Interval()
		t.plan(c, now.Add(t.jitter(backOff(interval, c.incomplete, max(interval, recheckInterval)))))
		c.incomplete++
	default:
		c.incomplete = 0
		t.plan(c, now.Add(t.jitter(recheckInterval)))
	}
}

// identify gives a camera at a listed address the UUID that it has said. It removes the
// camera if it is known already, or filtered out.
func (t *tracker) identify(c *camera, o outcome) bool {
	t.remove(c)
	k := t.keyOf(c.url, o.uuid)
	if o.uuid == "" || t.cameras[k] != nil || !admits(t.settings, o.uuid, o.scopes) || t.settings.Scopes != nil && o.scopes == nil {
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
func (t *tracker) settled() bool {
	for _, c := range t.cameras {
		if !c.asked {
			return false
		}
	}
	return true
}

// isSpare reports whether the device of a camera has answered at another URL.
func (t *tracker) isSpare(c *camera) bool {
	return slices.ContainsFunc(t.byUUID[c.uuid], func(other *camera) bool { return other != c && !other.found.IsZero() })
}

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
