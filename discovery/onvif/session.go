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
)

// cameraNetwork is where cameras announce themselves.
type cameraNetwork interface {
	// probe asks cameras to announce themselves. It returns when all copies are sent.
	probe(ctx context.Context)
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
	probed   chan struct{}
	running  int  // requests under way
	probing  bool // a probe is being sent

	began    time.Time
	probedAt time.Time // when the last probe began
	// nextProbe, evaluation and extraProbe are when to act next; zero for never. An extra
	// probe is not evaluated.
	nextProbe, evaluation, extraProbe time.Time
	evaluated                         bool // at least one probe has been evaluated
	sent                              time.Time
	list                              []discovery.Device // what was sent
}

// run finds cameras until ctx is done.
func (s *session) run(parent context.Context, send func([]discovery.Device) error) error {
	ctx, cancel := context.WithCancel(parent)
	defer s.workers.Wait()
	defer cancel()
	s.outcomes, s.probed = make(chan outcome), make(chan struct{})
	s.began = time.Now()
	s.nextProbe = s.began
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return parent.Err()
		case m := <-s.network.heard():
			if s.tracker.announced(time.Now(), m.from, m.Announcement) && s.extraProbe.IsZero() {
				s.extraProbe = latest(time.Now(), s.probedAt.Add(minProbePause))
			}
		case o := <-s.outcomes:
			s.running--
			s.tracker.ended(time.Now(), o)
		case <-s.probed:
			s.probing = false
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
	}
	if !s.probing {
		switch {
		case due(s.nextProbe, now):
			s.nextProbe = now.Add(s.tracker.jitter(s.settings.Interval()))
			s.evaluation = now.Add(s.settings.Timeout())
			if !s.evaluated {
				s.extraProbe = now.Add(s.settings.Timeout() / 2) // the first list must not lack a camera
			}
			s.startProbe(ctx, now)
		case due(s.extraProbe, now):
			s.extraProbe = time.Time{}
			s.startProbe(ctx, now)
		}
	}
	for _, r := range s.tracker.begin(now, maxConcurrentRequests-s.running) {
		s.running++
		s.workers.Go(func() {
			o := s.perform(ctx, r)
			select {
			case s.outcomes <- o:
			case <-ctx.Done():
			}
		})
	}
}

func (s *session) startProbe(ctx context.Context, now time.Time) {
	s.probing, s.probedAt = true, now
	s.workers.Go(func() {
		s.network.probe(ctx)
		select {
		case s.probed <- struct{}{}:
		case <-ctx.Done():
		}
	})
}

// evaluate ends the time for answers to a probe.
func (s *session) evaluate(now time.Time) {
	s.metrics.Scanned(s.probedAt)
	s.evaluated = true
	s.tracker.evaluated(now)
	for _, host := range s.settings.Hosts() {
		s.tracker.listed(now, host)
	}
}

// mustSend reports whether to send a list now: the first one when all cameras have
// answered or have had the time to, then after each change.
func (s *session) mustSend(now time.Time) bool {
	if s.sent.IsZero() {
		return s.evaluated && (s.tracker.settled() || now.Sub(s.began) >= s.settings.Timeout()+maxFirstWait)
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
	candidates := []time.Time{s.evaluation}
	if !s.probing {
		candidates = append(candidates, s.nextProbe, s.extraProbe)
	}
	if s.running < maxConcurrentRequests {
		candidates = append(candidates, s.tracker.queue.next())
	}
	if s.sent.IsZero() && s.evaluated {
		candidates = append(candidates, s.began.Add(s.settings.Timeout()+maxFirstWait))
	}
	if !s.sent.IsZero() && s.tracker.changed {
		candidates = append(candidates, s.sent.Add(minSendPause))
	}
	soonest := now.Add(time.Hour)
	for _, candidate := range candidates {
		if !candidate.IsZero() && candidate.Before(soonest) {
			soonest = candidate
		}
	}
	return soonest
}

func due(when, now time.Time) bool { return !when.IsZero() && !now.Before(when) }

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
