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
	"akri.sh/akri/discovery/internal/budget"
	"akri.sh/akri/discovery/internal/pool"
	"akri.sh/akri/discovery/opcua/details"
	"akri.sh/akri/internal/backoff"
	"akri.sh/akri/internal/text"
)

const (
	// maxFirstList bounds how long the first list is delayed: until then, each target has
	// its time, with all that its answer causes. A handler that restarts must not report a
	// device as gone because it was not asked. Agents wait for five minutes.
	maxFirstList = 285 * time.Second
	// firstPatience is how long a target that fails is asked again before the first list:
	// one lost answer must not report a device as gone either.
	firstPatience = 3 * time.Second
	// firstRetry is the pause between those attempts.
	firstRetry = 500 * time.Millisecond
	// lookupsTimeout bounds what an answer causes in a later poll: look-ups of names, and
	// calls of the servers that it refers to. It is enough for a server that is silent,
	// and what is unfinished by then goes on with the next polls.
	lookupsTimeout = 10 * time.Second
	// minWake is the minimum time between polls of targets that were just found.
	minWake = time.Second
	// minPause is the minimum time between polls that take longer than the interval.
	minPause = time.Second / 2
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

	connections, answers *pool.Share
	lookups              *pool.Share
	// known counts what targets report, and targetMemory the targets and the answers that
	// are looked up.
	known, targetMemory *budget.Account

	// The loop in run owns these.
	configured []polledTarget
	presence   *presence
	silent     map[string]bool // targets that did not answer, by key

	mu       sync.Mutex
	reserved int                    // applications that are looked up
	found    map[string]foundTarget // by key
	// waiting are the announced targets that there is no room for in found, which take
	// waitingBytes.
	waiting      []polledTarget
	waitingBytes int
	wake         chan struct{} // a target was found
}

// foundTarget is a target that mDNS or a scan has found.
type foundTarget struct {
	polledTarget
	// announced is set while mDNS announces it: it is then not forgotten.
	announced bool
}

func newSearch(ctx context.Context, h *Handler, d *details.Details) *search {
	s := &search{
		handler: h, details: d, names: newNames(h.options.Resolver, h.nameLookups.Share()),
		descriptions: &descriptions{failed: func(err error) { h.options.Metrics.Failed(reason(err)) }},
		connections:  h.connections.Share(), answers: h.answers.Share(),
		lookups: h.lookups.Share(), known: budget.Open(ctx), targetMemory: budget.Open(ctx),
		presence: newPresence(d.Misses), silent: map[string]bool{},
		found: map[string]foundTarget{}, wake: make(chan struct{}, 1),
	}
	s.names.known.account, s.descriptions.known.account = budget.Open(ctx), budget.Open(ctx)
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
	if err := s.targetMemory.Set(len(s.configured) * targetBytes); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	ready := s.startFinders(ctx, &group)

	began := time.Now()
	s.first(ctx, ready)
	var sent []discovery.Device
	for next := s.nextPoll(began); ctx.Err() == nil; {
		if latest := devices(s.details, s.presence.current()); sent == nil || !reflect.DeepEqual(latest, sent) {
			if err := send(latest); err != nil {
				return err
			}
			sent = latest
		}
		if s.sleep(ctx, time.Until(next)) {
			s.poll(ctx, s.unknown(), 0, lookupsTimeout)
			continue
		}
		began := time.Now()
		s.poll(ctx, s.targets(), 0, lookupsTimeout)
		s.forget()
		s.descriptions.known.prune(s.details.Misses)
		s.names.known.prune(s.details.Misses)
		next = s.nextPoll(began)
	}
	return ctx.Err()
}

// nextPoll returns the time of the next poll of all targets after one that began then.
// The jitter spreads the handlers of many nodes.
func (s *search) nextPoll(began time.Time) time.Time {
	interval := s.details.Interval()
	next := began.Add(interval*9/10 + rand.N(interval/5))
	if earliest := time.Now().Add(minPause); next.Before(earliest) {
		return earliest
	}
	return next
}

// first polls until each target has answered or had its time. ready is closed when mDNS
// and the scan have found their first servers.
func (s *search) first(ctx context.Context, ready <-chan struct{}) {
	limited, cancel := context.WithTimeout(ctx, maxFirstList)
	defer cancel()
	s.poll(limited, s.configured, firstPatience, maxFirstList)
	select {
	case <-ready:
		s.poll(limited, s.unknown(), firstPatience, maxFirstList)
	case <-ctx.Done():
	}
}

// poll asks targets, all at the same time, and records what they report. Targets that fail
// are asked again until the patience is over.
func (s *search) poll(ctx context.Context, targets []polledTarget, patience, lookups time.Duration) {
	if len(targets) == 0 || ctx.Err() != nil {
		return
	}
	began := time.Now()
	var mu sync.Mutex
	var group sync.WaitGroup
	for _, t := range targets {
		group.Go(func() {
			latest, err := s.ask(ctx, t, lookups)
			for err != nil && ctx.Err() == nil && time.Since(began) < patience {
				backoff.Sleep(ctx, firstRetry)
				latest, err = s.ask(ctx, t, lookups)
			}
			// Answers are recorded as they arrive, because what is recorded is bounded.
			mu.Lock()
			defer mu.Unlock()
			if err == nil || ctx.Err() == nil {
				s.record(t, latest, err)
			}
		})
	}
	group.Wait()
	s.handler.options.Metrics.Scanned(began)
}

// record records the answer of a target, or that it has not answered.
func (s *search) record(t polledTarget, latest targetAnswer, err error) {
	if err == nil {
		s.presence.answered(t.key(), t.order, latest)
		_ = s.known.Set(s.presence.bytes()) // an error ends ctx
		s.logAnswer(t)
		return
	}
	s.handler.options.Metrics.Failed(reason(err))
	s.presence.failed(t.key(), t.order)
	s.logFailure(t, err)
}

// logAnswer logs that a target answers again.
func (s *search) logAnswer(t polledTarget) {
	if s.silent[t.key()] {
		delete(s.silent, t.key())
		s.handler.options.Log.Info("An OPC UA server answers again", "method", t.method, "url", t.text)
	}
}

// logFailure logs that a target does not answer, once until it answers again.
func (s *search) logFailure(t polledTarget, err error) {
	if !s.silent[t.key()] {
		s.silent[t.key()] = true
		s.handler.options.Log.Warn("An OPC UA server does not answer; asking it again with each poll",
			"method", t.method, "url", t.text, "err", text.Truncate(clean(err.Error()), maxLoggedError))
	}
}

// sleep waits, and reports whether a target was found in the meantime.
func (s *search) sleep(ctx context.Context, limit time.Duration) bool {
	if limit <= minWake {
		backoff.Sleep(ctx, limit)
		return false
	}
	backoff.Sleep(ctx, minWake)
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

// add adds a target that a scan has found, if there is room.
func (s *search) add(t polledTarget) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(t, false)
}

// announce replaces the targets that mDNS announces. Those without room are added later.
func (s *search) announce(targets []polledTarget) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, each := range s.found {
		each.announced = false
		s.found[key] = each
	}
	s.waiting = slices.Clone(targets)
	s.admit()
}

// admit adds the announced targets that there is room for. It is called with mu.
func (s *search) admit() {
	s.waiting = slices.DeleteFunc(s.waiting, func(t polledTarget) bool { return s.put(t, true) })
	bytes := 0
	for _, t := range s.waiting {
		bytes += entryBytes + len(t.text) + len(t.addresses)*addressPortBytes
	}
	_ = s.targetMemory.Add(bytes - s.waitingBytes) // an error ends the request
	s.waitingBytes = bytes
}

// put reports whether there is room for a target, and adds it then. It is called with mu.
func (s *search) put(t polledTarget, announced bool) bool {
	former, isKnown := s.found[t.key()]
	if !isKnown && (len(s.found) >= maxFound || s.targetMemory.Add(targetBytes) != nil) {
		return false
	}
	s.found[t.key()] = foundTarget{t, announced || former.announced}
	if !isKnown {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
	return true
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
// announces them. Announced targets that wait take their place.
func (s *search) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, each := range s.found {
		if s.presence.silent(key) && !each.announced {
			delete(s.found, key)
			_ = s.targetMemory.Add(-targetBytes) // less is never too much
			delete(s.silent, key)
			s.presence.drop(key)
		}
	}
	s.admit()
}
