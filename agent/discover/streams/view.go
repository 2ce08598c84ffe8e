package streams

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"akri.sh/akri/agent/device"
	"akri.sh/akri/agent/discover/registry"
	"akri.sh/akri/internal/deadline"
)

// Device is a device as its handler reports it.
type Device struct {
	Key
	Properties map[string]string
	Mounts     []device.Mount
	Files      []device.File
	// Refused is the reason why containers may not get the device; empty if they may.
	// Its mounts and files are then missing.
	Refused string
	// Online is false if the device is refused, and while no endpoint reports it and it is
	// kept for its grace period.
	Online bool
}

// Key identifies a device of a Configuration.
type Key struct {
	ID     string
	Shared bool
}

// Failure is an error of one endpoint.
type Failure struct {
	Endpoint registry.Endpoint
	Message  string
}

// Snapshot is the known state of a Configuration's devices at one time.
type Snapshot struct {
	// Devices, sorted by id.
	Devices []Device
	// Settled means that there are no other devices. Before that, a device may be
	// missing because its endpoint has not reported it yet.
	Settled bool
	// Listed is the time of the last first list of an endpoint, after the agent has started
	// or the endpoint's stream was lost. Devices that it lacks may still exist.
	Listed time.Time
	// Grace is until when local devices are kept that the last list of an endpoint lacks.
	Grace time.Time
	// Failures, sorted by endpoint.
	Failures []Failure
	// Next is the time when the snapshot changes without an event; zero for never.
	Next time.Time
}

// view combines the messages of one Configuration's endpoints. Its input is events
// with their times. It must not be used concurrently.
type view struct {
	grace time.Duration // of the Configuration; zero for none
	// asked is the time when the endpoints first got a request, from which
	// settleLimit counts.
	asked   time.Time
	settled bool
	// listed is [Snapshot.Listed]; heard is the time of the last list.
	listed, heard time.Time
	// changed means that the Configuration has named another handler, whose first lists say
	// which of the former one's devices are gone, unless it is the one before that again.
	changed bool
	// held means that the request is incomplete, so no endpoint is late.
	held    bool
	sources map[registry.Endpoint]*source
}

// streamState is the state of the stream of an endpoint.
type streamState int

const (
	failing streamState = iota // it broke or is not open yet
	silent                     // it is open, and has received no message
	current                    // it is open, and has received a message
	refused                    // the endpoint rejects the request
)

// String returns the state as metrics show it.
func (s streamState) String() string { return [...]string{"failing", "open", "open", "refused"}[s] }

func (s streamState) open() bool { return s == silent || s == current }

// source is the state of one endpoint.
type source struct {
	shared  bool
	devices []Device
	// expected means that this endpoint belongs to the Configuration's handler.
	expected bool
	// retired means that the Configuration now names another handler. Its devices
	// are kept until the snapshot is settled.
	retired bool
	// reported means that a message arrived since the first request to the handler.
	reported bool
	stream   streamState
	openedAt time.Time // of an open stream
	// lostAt is the time when the stream first broke after the last message; zero if
	// it did not.
	lostAt time.Time
	// complaint describes a fault in the last message.
	complaint string
	// failure is why the last stream ended, until one has lasted for steadyAfter with a
	// message, or the endpoint accepts a request that it rejected.
	failure string
	// failingSince is the time of the first end of a stream since one had lasted; zero if
	// there was none.
	failingSince time.Time
	// shown means that the failure is shown. It stays so while streams keep ending: a
	// failure that comes and goes with each would be written each time.
	shown bool
}

// fail records why a stream ended.
func (s *source) fail(failure string, since time.Time, shown bool) {
	s.failure, s.failingSince, s.shown = failure, since, shown
}

// recovered records that nothing remains of a failure.
func (s *source) recovered() { s.fail("", time.Time{}, false) }

// lasts reports whether the stream is open, has received a message after the last one
// ended, and has lasted for steadyAfter.
func (s *source) lasts(a *alarm, now time.Time) bool {
	return s.stream == current && s.lostAt.IsZero() && a.due(s.openedAt.Add(steadyAfter), now)
}

// newView returns the view of a Configuration without any message.
func newView(now time.Time) *view {
	return &view{asked: now, sources: map[registry.Endpoint]*source{}}
}

// ChangeHandler records that the Configuration names another handler.
func (v *view) ChangeHandler(now time.Time) {
	v.asked, v.settled, v.changed = now, false, true
	for _, s := range v.sources {
		s.retired, s.expected = true, false
		s.stream, s.complaint = failing, ""
		s.lostAt = time.Time{}
		s.recovered()
	}
}

// Expect sets the endpoints that the handler has.
func (v *view) Expect(entries []registry.Entry) {
	for _, s := range v.sources {
		s.expected = false
	}
	for _, entry := range entries {
		s := v.sources[entry.Endpoint]
		if s == nil || s.retired && !s.expected {
			kept := source{}
			if s != nil {
				kept = *s // its devices are kept until the first message
			}
			s = &source{shared: entry.Shared, devices: kept.devices}
			v.sources[entry.Endpoint] = s
		}
		s.expected = true
	}
}

// Hold records whether the request is incomplete.
func (v *view) Hold(held bool, now time.Time) {
	if v.held && !held && !v.settled {
		v.asked = now
	}
	v.held = held
}

// Reopen records that the agent closes a stream to send another request. If it has the
// same details, for example after the rotation of a Secret, what the next list lacks may
// still exist, as if the stream had been lost.
func (v *view) Reopen(endpoint registry.Endpoint, sameDetails bool, now time.Time) {
	if s := v.sources[endpoint]; s != nil {
		if sameDetails && s.lostAt.IsZero() {
			s.lostAt = now
		}
		s.stream, s.complaint = failing, ""
		s.recovered()
	}
}

// Opened records that a stream is open.
func (v *view) Opened(endpoint registry.Endpoint, shared bool, now time.Time) {
	if s := v.sources[endpoint]; s != nil {
		s.shared = shared
		if s.stream == refused { // the same request until now, so another version of the handler may serve it
			s.lostAt = now
		}
		s.stream, s.openedAt = silent, now
	}
}

// Received records a message, which is the full list. complaint describes a fault in
// the message, if any.
func (v *view) Received(endpoint registry.Endpoint, devices []Device, complaint string, now time.Time) {
	if s := v.sources[endpoint]; s != nil {
		if !s.lostAt.IsZero() || !s.reported && (!v.changed || len(s.devices) > 0) {
			v.listed = now
		}
		s.devices, v.heard = devices, now
		s.reported, s.stream = true, current
		s.lostAt, s.complaint = time.Time{}, complaint
		if s.failingSince.IsZero() {
			s.recovered() // from a rejection
		}
	}
}

// Broke records that a stream broke or could not be opened.
func (v *view) Broke(endpoint registry.Endpoint, failure string, now time.Time) {
	if s := v.sources[endpoint]; s != nil {
		since, shown := s.failingSince, s.shown
		if since.IsZero() || s.lasts(&alarm{}, now) {
			since, shown = now, false
		}
		s.fail(failure, since, shown)
		s.stream, s.complaint = failing, ""
		if s.lostAt.IsZero() {
			s.lostAt = now
		}
	}
}

// Refused records that the endpoint rejects the request. Its devices are kept: a
// typo in a Configuration must not remove them.
func (v *view) Refused(endpoint registry.Endpoint, failure string) {
	if s := v.sources[endpoint]; s != nil {
		s.stream, s.complaint = refused, ""
		s.lostAt = time.Time{}
		s.fail(failure, time.Time{}, true)
	}
}

// At returns the snapshot at a time, and drops expired devices.
func (v *view) At(now time.Time) Snapshot {
	var next alarm
	for endpoint, s := range v.sources {
		if end, ends := s.end(v.grace); ends && next.due(end, now) {
			s.expire()
		}
		if !s.expected && len(s.devices) == 0 {
			delete(v.sources, endpoint)
		}
	}
	v.settle(now, &next)

	snapshot := Snapshot{Settled: v.settled, Listed: v.listed, Grace: v.heard.Add(v.grace)}
	union := map[Key]Device{}
	for _, endpoint := range slices.SortedFunc(maps.Keys(v.sources), registry.Endpoint.Compare) {
		s := v.sources[endpoint]
		reachable := s.stream.open() || s.lostAt.IsZero() || !next.due(s.lostAt.Add(restartAllowance), now)
		for _, d := range s.devices {
			d.Online = reachable && d.Refused == ""
			if seen, found := union[d.Key]; !found || d.Online && !seen.Online {
				union[d.Key] = d
			}
		}
		if failure := s.report(&next, now); failure != "" {
			snapshot.Failures = append(snapshot.Failures, Failure{endpoint, failure})
		}
	}
	snapshot.Devices = slices.SortedFunc(maps.Values(union), func(a, b Device) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(strconv.FormatBool(a.Shared), strconv.FormatBool(b.Shared)))
	})
	snapshot.Next = next.at
	return snapshot
}

// report returns the failure to show at a time, or "".
func (s *source) report(next *alarm, now time.Time) string {
	switch {
	case s.failure == "":
	case !s.failingSince.IsZero() && s.lasts(next, now):
		s.recovered()
	case s.shown || !s.lostAt.IsZero() && next.due(s.failingSince.Add(failureReportDelay), now):
		s.shown = true
		return s.failure
	}
	return s.complaint
}

// end returns the time when the endpoint's devices expire without an event, and
// whether they do.
func (s *source) end(grace time.Duration) (time.Time, bool) {
	switch {
	case s.retired, s.stream == refused, s.stream == current:
		return time.Time{}, false
	case s.stream == silent:
		return s.openedAt.Add(firstListTimeout), true
	case !s.lostAt.IsZero():
		return s.lostAt.Add(keeps(grace, s.shared)), true
	}
	return time.Time{}, false // the stream is being opened
}

// expire drops the endpoint's devices.
func (s *source) expire() {
	s.devices = nil
	if s.stream == silent {
		s.reported, s.stream = true, current // silence counts as an empty list
	}
}

// settle decides whether the snapshot is complete.
func (v *view) settle(now time.Time, next *alarm) {
	if v.settled || v.held {
		return
	}
	expected, missing, rejected := 0, 0, false
	for _, s := range v.sources {
		if s.expected {
			expected++
			if !s.reported {
				missing++
				rejected = rejected || s.stream == refused
			}
		}
	}
	switch {
	case rejected:
		return
	case expected > 0 && missing == 0:
	case !next.due(v.asked.Add(max(settleLimit, v.grace)), now):
		return
	}
	v.settled = true
	for endpoint, s := range v.sources {
		if s.retired {
			delete(v.sources, endpoint)
		}
	}
}

// alarm keeps the earliest future time.
type alarm struct{ at time.Time }

// due reports whether a time has passed. Otherwise the time becomes a candidate for
// the alarm.
func (a *alarm) due(at, now time.Time) bool {
	if !at.After(now) {
		return true
	}
	a.at = deadline.Earliest(a.at, at)
	return false
}

// State returns the state of an endpoint's stream.
func (v *view) State(endpoint registry.Endpoint) streamState {
	if s := v.sources[endpoint]; s != nil {
		return s.stream
	}
	return failing
}
