package onvif

import (
	"context"
	"net/netip"
	"reflect"
	"sync"
	"time"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/monitor"
	"akri.sh/akri/discovery/onvif/details"
	"akri.sh/akri/discovery/onvif/wsdiscovery"
	"akri.sh/akri/internal/deadline"
)

// cameraNetwork is where cameras announce themselves.
type cameraNetwork interface {
	// probe asks all cameras on the links to announce themselves. It returns when all
	// copies are sent, which takes less than a second. Calls do not overlap.
	probe(ctx context.Context)
	// sweep does the same for the listed addresses, one by one, which takes long if there
	// are many. Calls do not overlap, but may with one of probe.
	sweep(ctx context.Context)
	// heard returns the channel of announcements.
	heard() <-chan message
}

// message is an announcement from a host that may send one.
type message struct {
	from netip.Addr
	wsdiscovery.Announcement
}

// session serves one request of an agent. Its run method owns the tracker and starts all
// goroutines.
type session struct {
	settings *details.Details
	metrics  *monitor.Metrics
	network  cameraNetwork
	perform  func(context.Context, request) outcome
	tracker  *tracker

	workers  sync.WaitGroup
	outcomes chan outcome
	probed   chan func(now time.Time)

	// A round is a probe of all links and listed addresses, the time for answers, which
	// begins when all is sent, and the evaluation. The first one has the probe twice.
	roundBegan time.Time
	copies     int // how often this round's probe must still be sent
	unsent     int // parts of it that are being sent
	// nextProbe, evaluation and extraProbe are when to act next; zero for never. An extra
	// probe is sent to the links only, and is not evaluated.
	nextProbe, evaluation, extraProbe time.Time
	probing                           bool // a probe is being sent to the links
	probedAt                          time.Time
	evaluatedAt                       time.Time // the end of the first round
	beganAt                           time.Time // when it last looked for requests that are due

	sent time.Time
	list []discovery.Device // what was sent
}

// run finds cameras until ctx is done.
func (s *session) run(parent context.Context, send func([]discovery.Device) error) error {
	ctx, cancel := context.WithCancel(parent)
	defer s.workers.Wait()
	defer cancel()
	s.outcomes, s.probed = make(chan outcome), make(chan func(time.Time))
	s.nextProbe = time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return parent.Err()
		case m := <-s.network.heard():
			if s.tracker.announced(time.Now(), m.from, m.Announcement) && s.extraProbe.IsZero() {
				s.extraProbe = deadline.Latest(time.Now(), s.probedAt.Add(minProbePause))
			}
		case o := <-s.outcomes:
			s.tracker.ended(time.Now(), o)
		case record := <-s.probed:
			record(time.Now())
		case <-timer.C:
		}
		now := time.Now()
		s.act(ctx, now)
		if s.mustSend(now) {
			if err := s.send(now, send); err != nil {
				return err
			}
		}
		timer.Reset(max(s.next(now).Sub(now), 0))
	}
}

// act does what is due.
func (s *session) act(ctx context.Context, now time.Time) {
	if due(s.evaluation, now) {
		s.evaluation = time.Time{}
		s.evaluate(now)
		s.nextProbe = deadline.Latest(now, s.roundBegan.Add(s.tracker.jitter(s.settings.Interval())))
	}
	switch {
	case s.probing:
	case due(s.nextProbe, now):
		s.nextProbe = time.Time{}
		s.probeAll(ctx, now)
	case due(s.extraProbe, now):
		s.extraProbe = time.Time{}
		s.probeLinks(ctx, now, func(time.Time) {})
	}
	if !due(s.tracker.next, now) || now.Before(s.beganAt.Add(minBeginPause)) {
		return
	}
	s.beganAt = now
	for _, r := range s.tracker.begin(now) {
		s.workers.Go(func() {
			o := s.perform(ctx, r)
			select {
			case s.outcomes <- o:
			case <-ctx.Done():
			}
		})
	}
}

// probeAll begins to send the probe of a round, and begins the round if it is the first copy.
func (s *session) probeAll(ctx context.Context, now time.Time) {
	if s.copies == 0 {
		s.roundBegan, s.copies = now, 1
		if s.evaluatedAt.IsZero() {
			s.copies = 2 // the first list must not lack a camera
		}
	}
	s.copies--
	s.unsent = 2
	s.probeLinks(ctx, now, s.partSent)
	s.start(ctx, s.network.sweep, s.partSent)
}

// partSent begins the time for answers when everything is sent.
func (s *session) partSent(now time.Time) {
	if s.unsent--; s.unsent > 0 {
		return
	}
	wait := s.settings.Timeout()
	if s.evaluatedAt.IsZero() {
		wait /= 2 // twice
	}
	if s.copies > 0 {
		s.nextProbe = now.Add(wait)
	} else {
		s.evaluation = now.Add(wait)
	}
}

func (s *session) probeLinks(ctx context.Context, now time.Time, sent func(now time.Time)) {
	s.probing, s.probedAt = true, now
	s.start(ctx, s.network.probe, func(now time.Time) { s.probing = false; sent(now) })
}

// start sends something in the background. The run method calls sent when it is done.
func (s *session) start(ctx context.Context, send func(context.Context), sent func(now time.Time)) {
	s.workers.Go(func() {
		send(ctx)
		select {
		case s.probed <- sent:
		case <-ctx.Done():
		}
	})
}

// evaluate ends the time for answers to a probe.
func (s *session) evaluate(now time.Time) {
	s.metrics.Scanned(s.roundBegan)
	if s.evaluatedAt.IsZero() {
		s.evaluatedAt = now
	}
	s.tracker.evaluated(now)
	for _, host := range s.settings.Hosts() {
		s.tracker.listed(now, host)
	}
}

// mustSend reports whether to send a list now: the first one when all cameras have
// answered or have had the time to, then after each change.
func (s *session) mustSend(now time.Time) bool {
	if s.sent.IsZero() {
		return !s.evaluatedAt.IsZero() && (s.tracker.settled() || now.Sub(s.evaluatedAt) >= maxFirstWait)
	}
	return s.tracker.changed && now.Sub(s.sent) >= minSendPause
}

// send sends the list, unless it is the same as before.
func (s *session) send(now time.Time, send func([]discovery.Device) error) error {
	list := s.tracker.devices()
	if !s.sent.IsZero() && reflect.DeepEqual(list, s.list) {
		return nil
	}
	s.sent, s.list = now, list
	return send(list)
}

// next returns when there is something to do, if nothing happens before.
func (s *session) next(now time.Time) time.Time {
	soonest := deadline.Earliest(now.Add(time.Hour), s.evaluation)
	if next := s.tracker.next; !next.IsZero() {
		soonest = deadline.Earliest(soonest, deadline.Latest(next, s.beganAt.Add(minBeginPause)))
	}
	if !s.probing {
		soonest = deadline.Earliest(soonest, s.nextProbe, s.extraProbe)
	}
	switch {
	case s.sent.IsZero() && !s.evaluatedAt.IsZero():
		soonest = deadline.Earliest(soonest, s.evaluatedAt.Add(maxFirstWait))
	case !s.sent.IsZero() && s.tracker.changed:
		soonest = deadline.Earliest(soonest, s.sent.Add(minSendPause))
	}
	return soonest
}

func due(when, now time.Time) bool { return !when.IsZero() && !now.Before(when) }
