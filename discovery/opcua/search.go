package opcua

import (
	"context"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"time"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/opcua/details"
	"akri.sh/akri/internal/text"
)

const (
	// firstListTimeout bounds how long servers that do not answer delay the first list.
	// Until then they are asked again: a handler that restarts must not report a device
	// as gone because one answer was lost.
	firstListTimeout = 3 * time.Second
	// firstRetry is the pause between those attempts.
	firstRetry = 500 * time.Millisecond
	// askTimeout bounds what an answer causes: lookups of names, and calls of the servers
	// that it refers to. What is not done by then is done with the next polls.
	askTimeout = 15 * time.Second
	// minWake is the minimum time between polls of targets that were just found.
	minWake = time.Second
	// maxFound bounds the servers that mDNS or a scan may add.
	maxFound = 1000
	// maxLoggedError is how much of an error is logged, in bytes.
	maxLoggedError = 300
)

// search looks for the servers of one request.
type search struct {
	handler      *Handler
	details      *details.Details
	names        *names
	descriptions *descriptions

	// The loop in run owns these.
	configured []polledTarget
	presence   *presence
	silent     map[string]bool // targets that did not answer, by key

	mu    sync.Mutex
	found map[string]foundTarget // by key
	wake  chan struct{}          // a target was found
}

// foundTarget is a target that mDNS or a scan has found.
type foundTarget struct {
	polledTarget
	// announced is set while mDNS announces it: it is then not forgotten.
	announced bool
}

func newSearch(h *Handler, d *details.Details) *search {
	s := &search{
		handler: h, details: d, names: newNames(h.options.Resolver),
		descriptions: &descriptions{known: map[string]remembrance{}, failed: func(err error) { h.options.Metrics.Failed(reason(err)) }},
		presence:     newPresence(d.Misses), silent: map[string]bool{},
		found: map[string]foundTarget{}, wake: make(chan struct{}, 1),
	}
	for _, each := range []struct {
		method method
		urls   *details.URLs
	}{{standard, d.Method.Standard}, {network, d.Method.Network}} {
		if each.urls == nil {
			continue
		}
		for _, asked := range each.urls.DiscoveryURLs {
			url, _ := details.ParseURL(asked) // the details are valid
			s.configured = append(s.configured, polledTarget{method: each.method, text: asked, url: url, order: len(s.configured)})
		}
	}
	return s
}

// run polls until ctx is done or send fails.
func (s *search) run(ctx context.Context, send func([]discovery.Device) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	ready := s.startFinders(ctx, &group)

	s.first(ctx, ready)
	var sent []discovery.Device
	for poll := s.nextPoll(); ctx.Err() == nil; {
		if latest := devices(s.details, s.presence.current()); sent == nil || !reflect.DeepEqual(latest, sent) {
			if err := send(latest); err != nil {
				return err
			}
			sent = latest
		}
		if s.sleep(ctx, time.Until(poll)) {
			s.poll(ctx, s.unknown())
			continue
		}
		s.poll(ctx, s.targets())
		s.forget()
		s.descriptions.prune()
		poll = s.nextPoll()
	}
	return ctx.Err()
}

// nextPoll returns the time of the next poll of all targets. The jitter spreads the
// handlers of many nodes.
func (s *search) nextPoll() time.Time {
	interval := s.details.Interval()
	return time.Now().Add(interval*9/10 + rand.N(interval/5))
}

// first polls until each target has answered, but not for long. ready is closed when mDNS
// and the scan have found their first servers.
func (s *search) first(ctx context.Context, ready <-chan struct{}) {
	limited, cancel := context.WithTimeout(ctx, firstListTimeout)
	defer cancel()
	pending := s.poll(limited, s.configured)
	for len(pending) > 0 && limited.Err() == nil {
		pause(limited, firstRetry)
		pending = s.poll(limited, pending)
	}
	for _, t := range pending {
		s.presence.failed(t.key(), t.order)
	}
	select {
	case <-ready:
		s.poll(ctx, s.unknown())
	case <-ctx.Done():
	}
}

// poll asks targets, records what they report, and returns those that did not answer.
func (s *search) poll(ctx context.Context, targets []polledTarget) []polledTarget {
	if len(targets) == 0 || ctx.Err() != nil {
		return targets
	}
	began := time.Now()
	type answer struct {
		found []application
		err   error
	}
	answers := make([]answer, len(targets))
	parallel(len(targets), func(i int) {
		limited, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		answers[i].found, answers[i].err = s.ask(limited, targets[i])
	})
	s.handler.options.Metrics.Scanned(began)

	var pending []polledTarget
	for i, t := range targets {
		if answers[i].err == nil {
			s.presence.answered(t.key(), t.order, answers[i].found)
			s.answers(t)
			continue
		}
		pending = append(pending, t)
		if ctx.Err() == nil || !isInterrupted(answers[i].err) {
			s.handler.options.Metrics.Failed(reason(answers[i].err))
			s.presence.failed(t.key(), t.order)
			s.fails(t, answers[i].err)
		}
	}
	return pending
}

// answers logs that a target answers again.
func (s *search) answers(t polledTarget) {
	if s.silent[t.key()] {
		delete(s.silent, t.key())
		s.handler.options.Log.Info("An OPC UA server answers again", "method", t.method, "url", t.text)
	}
}

// fails logs that a target does not answer, once until it answers again.
func (s *search) fails(t polledTarget, err error) {
	if !s.silent[t.key()] {
		s.silent[t.key()] = true
		s.handler.options.Log.Warn("An OPC UA server does not answer; asking it again with each poll",
			"method", t.method, "url", t.text, "err", text.Truncate(clean(err.Error()), maxLoggedError))
	}
}

// sleep waits, and reports whether a target was found in the meantime.
func (s *search) sleep(ctx context.Context, limit time.Duration) bool {
	if limit <= minWake {
		pause(ctx, limit)
		return false
	}
	pause(ctx, minWake)
	timer := time.NewTimer(limit - minWake)
	defer timer.Stop()
	select {
	case <-s.wake:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// add adds a target that mDNS or a scan has found.
func (s *search) add(t polledTarget, announced bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	former, isKnown := s.found[t.key()]
	if !isKnown && len(s.found) >= maxFound {
		return
	}
	s.found[t.key()] = foundTarget{t, announced || former.announced}
	if !isKnown {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// announce replaces the targets that mDNS announces.
func (s *search) announce(targets []polledTarget) {
	s.mu.Lock()
	for key, each := range s.found {
		each.announced = false
		s.found[key] = each
	}
	s.mu.Unlock()
	for _, t := range targets {
		s.add(t, true)
	}
}

// targets returns all targets.
func (s *search) targets() []polledTarget {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Clone(s.configured)
	for _, key := range slices.Sorted(maps.Keys(s.found)) {
		all = append(all, s.found[key].polledTarget)
	}
	return all
}

// unknown returns the targets that were not asked yet.
func (s *search) unknown() []polledTarget {
	return slices.DeleteFunc(s.targets(), func(t polledTarget) bool { return s.presence.targets[t.key()] != nil })
}

// forget forgets found targets that have not answered for long, unless mDNS still
// announces them.
func (s *search) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, each := range s.found {
		if s.presence.silent(key) && !each.announced {
			delete(s.found, key)
			delete(s.silent, key)
			s.presence.drop(key)
		}
	}
}

// pause waits for some time, or until ctx is done.
func pause(ctx context.Context, limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
