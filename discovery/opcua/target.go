package opcua

import (
	"context"
	"maps"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"time"

	"akri.sh/akri/discovery/opcua/details"
	"akri.sh/akri/discovery/opcua/uatcp"
	"akri.sh/akri/internal/backoff"
)

// method is how a target is asked.
type method string

const (
	standard method = "standard" // FindServers
	network  method = "network"  // FindServersOnNetwork
	direct   method = "direct"   // the server itself, found by mDNS or a scan
)

// target is a server that is polled.
type target struct {
	method method
	text   string
	url    details.URL
	order  int

	// The goroutine in follow owns these.
	name     name               // of the URL's host
	servers  map[string]*server // that it reports, by URL
	failures int                // in a row

	// The search's mu guards these.
	addresses []netip.AddrPort // of a server that was found
	isPolled  bool             // at least once
	// published has the servers that are complete, ordered by URL.
	published []application
}

// key identifies a target.
func (t *target) key() string { return string(t.method) + " " + t.text }

// follow polls a target until ctx is done or the target is forgotten. The jitter of the
// pauses spreads the handlers of many nodes.
func (s *search) follow(ctx context.Context, t *target) {
	patience := time.Now().Add(firstPatience)
	for ctx.Err() == nil {
		began := time.Now()
		err := s.poll(ctx, t)
		if err != nil && time.Now().Before(patience) && backoff.Sleep(ctx, firstRetry) {
			continue
		}
		patience = time.Time{}
		if ctx.Err() != nil {
			return
		}
		s.handler.options.Metrics.Scanned(began)
		s.note(t, err)
		if !s.publish(ctx, t) {
			return
		}
		interval := s.details.Interval()
		backoff.Sleep(ctx, max(time.Until(began.Add(interval*9/10+rand.N(interval/5))), minPause))
	}
}

// note counts and logs whether a target has answered. It is logged once until that changes.
func (s *search) note(t *target, err error) {
	log := s.handler.options.Log.With("method", t.method, "url", t.text)
	switch {
	case err != nil:
		s.failed(err)
		if t.failures++; t.failures == 1 {
			log.Warn("An OPC UA server does not answer; asking it again with each poll", "err", err)
		}
	case t.failures > 0:
		t.failures = 0
		log.Info("An OPC UA server answers again")
	}
}

// poll asks a target, and completes what it reports. Nothing is published meanwhile: until
// then, a server that is known stays as it was.
func (s *search) poll(ctx context.Context, t *target) error {
	from, err := s.ask(ctx, t)
	s.judge(t, err == nil)
	if err != nil || t.method == direct {
		return err
	}
	s.completeAll(ctx, from, t)
	return nil
}

// completeAll completes the servers that the latest answer of a target has. All of them wait for
// calls at the same time, so that silent servers delay them once.
func (s *search) completeAll(ctx context.Context, from origin, t *target) {
	var group sync.WaitGroup
	for _, r := range t.servers { // in random order, so that a slow one is not always first
		if r.missed == 0 {
			group.Go(func() { s.complete(ctx, from, r) })
		}
	}
	group.Wait()
}

// judge ends the reading of an answer, and forgets the servers that were missing too often.
func (s *search) judge(t *target, isAnswer bool) {
	for key, r := range t.servers {
		r.missed++
		if r.isLatest && isAnswer {
			r.missed = 0
		}
		r.isLatest = false
		if r.missed >= s.details.Misses {
			delete(t.servers, key)
			s.servers.Release(1)
		}
	}
}

// ask calls a target.
func (s *search) ask(ctx context.Context, t *target) (origin, error) {
	if err := s.calls.Acquire(ctx, 1); err != nil {
		return origin{}, err
	}
	defer s.calls.Release(1)
	from := origin{text: t.text, url: t.url}
	if t.method == direct {
		return from, s.askServer(ctx, t)
	}
	if err := s.resolve(ctx, &t.name, t.url.Host); len(t.name.addresses) == 0 {
		return from, err
	}
	err := s.call(ctx, withPort(t.name.addresses, t.url.Port), t.text, func(channel *uatcp.Channel, answering netip.Addr) error {
		from.address = answering
		if t.method == network { // the filters do not apply to the names of records, which are those of hosts
			return channel.FindServersOnNetwork(func(each uatcp.Application) { s.report(t, from, describedBy(each)) })
		}
		return channel.FindServers(func(each uatcp.Application) {
			if a := describedBy(each); admits(s.details, a) { // others need no look-ups
				s.report(t, from, a)
			}
		})
	})
	return from, err
}

// report records a server that an answer of a target has, if it has a URL with the scheme
// opc.tcp and there is room. If the answer turns out to be none, a new one is forgotten.
func (s *search) report(t *target, from origin, a application) {
	chosen, url, ok := choose(from, a.urls)
	if !ok {
		return
	}
	r := t.servers[chosen]
	if r == nil {
		if !s.servers.TryAcquire(1) {
			s.handler.options.Metrics.Failed(reasonTooMany)
			return
		}
		r = &server{text: chosen, url: url, missed: s.details.Misses - 1}
		t.servers[chosen] = r
	}
	a.urls = nil // one is chosen
	r.reported, r.isLatest = a, true
}

// askServer asks a server that was found for its own description. Its URL is the address at
// which it was found, with the path that it reports.
func (s *search) askServer(ctx context.Context, t *target) error {
	s.mu.Lock()
	addresses := t.addresses
	s.mu.Unlock()
	a, err := s.describe(ctx, addresses, t.text)
	if err != nil {
		return err
	}
	a.url, a.addresses = t.text, addresses
	for _, text := range a.urls {
		if reported, err := details.ParseURL(text); err == nil && reported.Port == t.url.Port && t.url.Path == "" {
			reported.Host = t.url.Host
			a.url = reported.String()
			break
		}
	}
	a.urls = []string{t.text}
	s.report(t, origin{url: t.url}, a)
	if r := t.servers[t.text]; r != nil {
		r.published = a
	}
	return nil
}

// publish makes the servers that a target reports known to the search. It reports false if
// the target is forgotten: it was found, has not answered for long, and mDNS does not
// announce it any longer.
func (s *search) publish(ctx context.Context, t *target) bool {
	var latest []application
	for _, url := range slices.Sorted(maps.Keys(t.servers)) {
		latest = append(latest, t.servers[url].published)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !t.isPolled || !reflect.DeepEqual(latest, t.published) {
		t.isPolled, t.published = true, latest
		s.notify()
	}
	if t.method != direct || t.failures < s.details.Misses ||
		slices.ContainsFunc(s.announced, func(each *target) bool { return each.text == t.text }) { // all are direct
		return true
	}
	delete(s.targets, t.key())
	s.admit(ctx, s.announced...)
	return false
}
