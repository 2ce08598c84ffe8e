package streams

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"akri.sh/akri/agent/device"
	"akri.sh/akri/agent/discover/registry"
)

// Device is a device as its handler describes it.
type Device struct {
	Key
	Properties map[string]string
	Mounts     []device.Mount
	Files      []device.File
}

// Key tells the devices of a Configuration apart.
type Key struct {
	ID     string
	Shared bool
}

// Known is a device that this node has, or has had until a moment ago.
type Known struct {
	Device
	// Online is false while nobody sees the device and it is only kept for its
	// grace.
	Online bool
}

// Failure is what is wrong with one endpoint.
type Failure struct {
	Endpoint registry.Endpoint
	Message  string
}

// Picture is a View at a moment.
type Picture struct {
	// Devices in the order of their ids.
	Devices []Known
	// Settled tells that there are no other devices. Until then, one that is
	// not listed may only not have been heard of yet.
	Settled bool
	// Failures in the order of their endpoints.
	Failures []Failure
	// Next is when the picture will change by itself; zero if it will not.
	Next time.Time
}

// View is what the endpoints of one Configuration have said. It is fed with
// what happens and the time at which it does; it is not for concurrent use.
type View struct {
	grace Grace
	// asked is when the endpoints were first asked: the time from which
	// SettleLimit counts.
	asked   time.Time
	settled bool
	// held: the question cannot be asked at present, for no fault of the
	// endpoints, so none of them is late.
	held    bool
	sources map[registry.Endpoint]*source
}

// source is one endpoint's part.
type source struct {
	shared  bool
	devices []Device
	// expected: the Configuration's handler has this endpoint.
	expected bool
	// retired: the Configuration no longer asks this handler. Its devices stay
	// until the picture is settled.
	retired bool
	// spoke: a message came since the handler was first asked.
	spoke bool
	// open: a stream stands, since openedAt. heard: it has spoken.
	open, heard bool
	openedAt    time.Time
	// lostAt is when the stream first broke after the last message; zero while
	// there is nothing to wait for.
	lostAt time.Time
	// refused: the endpoint answers, but not to this question.
	refused bool
	failure string
}

// NewView returns the picture of a Configuration of which nothing is known.
func NewView(grace Grace, now time.Time) *View {
	return &View{grace: grace, asked: now, sources: map[registry.Endpoint]*source{}}
}

// AskAnother says that the Configuration asks another handler from now on.
func (v *View) AskAnother(now time.Time) {
	v.asked, v.settled = now, false
	for _, s := range v.sources {
		s.retired, s.expected = true, false
		s.open, s.heard, s.failure, s.refused = false, false, "", false
		s.lostAt = time.Time{}
	}
}

// Expect says which endpoints the handler has.
func (v *View) Expect(entries []registry.Entry) {
	for _, s := range v.sources {
		s.expected = false
	}
	for _, entry := range entries {
		s := v.sources[entry.Endpoint]
		if s == nil || s.retired && !s.expected {
			kept := []Device(nil)
			if s != nil {
				kept = s.devices // asked again after another: they stay until it speaks
			}
			s = &source{shared: entry.Shared, devices: kept}
			v.sources[entry.Endpoint] = s
		}
		s.expected = true
	}
}

// Hold says whether the question cannot be asked.
func (v *View) Hold(held bool, now time.Time) {
	if v.held && !held && !v.settled {
		v.asked = now
	}
	v.held = held
}

// Reopen says that we end the stream of an endpoint to ask anew.
func (v *View) Reopen(endpoint registry.Endpoint) {
	if s := v.sources[endpoint]; s != nil {
		s.open, s.heard, s.refused, s.failure = false, false, false, ""
	}
}

// Opened says that a stream stands.
func (v *View) Opened(endpoint registry.Endpoint, shared bool, now time.Time) {
	if s := v.sources[endpoint]; s != nil {
		s.shared = shared
		s.open, s.heard, s.openedAt = true, false, now
		s.refused = false
	}
}

// Spoke says that a message came: the full list. The complaint, if any, is what
// was wrong with it.
func (v *View) Spoke(endpoint registry.Endpoint, devices []Device, complaint string) {
	if s := v.sources[endpoint]; s != nil {
		s.devices = devices
		s.spoke, s.heard = true, true
		s.lostAt, s.refused, s.failure = time.Time{}, false, complaint
	}
}

// Broke says that a stream ended without our doing, or could not be opened.
func (v *View) Broke(endpoint registry.Endpoint, failure string, now time.Time) {
	if s := v.sources[endpoint]; s != nil {
		s.open, s.heard, s.failure = false, false, failure
		if s.lostAt.IsZero() {
			s.lostAt = now
		}
	}
}

// Refused says that the endpoint rejects the question. What it found before
// stays: its author will want to correct a slip without losing the devices.
func (v *View) Refused(endpoint registry.Endpoint, failure string) {
	if s := v.sources[endpoint]; s != nil {
		s.open, s.heard, s.refused, s.failure = false, false, true, failure
		s.lostAt = time.Time{}
	}
}

// At draws the picture, and forgets what is over.
func (v *View) At(now time.Time) Picture {
	var next alarm
	for endpoint, s := range v.sources {
		if end, ends := s.end(v.grace); ends && next.due(end, now) {
			s.over()
		}
		if !s.expected && len(s.devices) == 0 {
			delete(v.sources, endpoint)
		}
	}
	v.settle(now, &next)

	picture := Picture{Settled: v.settled}
	union := map[Key]Known{}
	for _, endpoint := range slices.SortedFunc(maps.Keys(v.sources), registry.Endpoint.Compare) {
		s := v.sources[endpoint]
		online := s.open || s.lostAt.IsZero() || !next.due(s.lostAt.Add(RestartAllowance), now)
		for _, d := range s.devices {
			if seen, found := union[d.Key]; !found || online && !seen.Online {
				union[d.Key] = Known{d, online}
			}
		}
		if s.failure != "" && (s.refused || s.lostAt.IsZero() || next.due(s.lostAt.Add(FailurePatience), now)) {
			picture.Failures = append(picture.Failures, Failure{endpoint, s.failure})
		}
	}
	picture.Devices = slices.SortedFunc(maps.Values(union), func(a, b Known) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(boolToInt(a.Shared), boolToInt(b.Shared)))
	})
	picture.Next = next.at
	return picture
}

// end is when the endpoint's devices end if nothing is heard of it.
func (s *source) end(grace Grace) (time.Time, bool) {
	switch {
	case s.retired, s.refused, s.heard:
		return time.Time{}, false
	case s.open:
		return s.openedAt.Add(SilenceLimit), true
	case !s.lostAt.IsZero():
		return s.lostAt.Add(grace.of(s.shared)), true
	}
	return time.Time{}, false // being opened for the first time, or anew
}

// over: the endpoint's time has run out.
func (s *source) over() {
	s.devices = nil
	if s.open {
		s.spoke, s.heard = true, true // it has said "nothing"
	}
}

// settle decides whether all has been heard that there is to hear.
func (v *View) settle(now time.Time, next *alarm) {
	if v.settled || v.held {
		return
	}
	expected, unheard, refused := 0, 0, false
	for _, s := range v.sources {
		if s.expected {
			expected++
			if !s.spoke {
				unheard++
				refused = refused || s.refused
			}
		}
	}
	switch {
	case refused:
		return
	case expected > 0 && unheard == 0:
	case !next.due(v.asked.Add(SettleLimit), now):
		return
	}
	v.settled = true
	for endpoint, s := range v.sources {
		if s.retired {
			delete(v.sources, endpoint)
		}
	}
}

// alarm collects the earliest time that is still to come.
type alarm struct{ at time.Time }

// due tells whether a time has come; if not, it is waited for.
func (a *alarm) due(at, now time.Time) bool {
	if !at.After(now) {
		return true
	}
	if a.at.IsZero() || at.Before(a.at) {
		a.at = at
	}
	return false
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
