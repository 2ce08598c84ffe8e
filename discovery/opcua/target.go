package opcua

import (
	"cmp"
	"context"
	"net/netip"
	"reflect"
	"slices"
	"strings"
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
	servers  map[string]*server // that it reports, by URL
	failures int                // in a row

	// The search's mu guards these.
	addresses []string // replace the URL's host, if there are any
	// isAnnounced is set while mDNS announces it: it is then not forgotten.
	isAnnounced bool
	// published has the servers that are complete, ordered by URL.
	published []application
}

// key identifies a target.
func (t *target) key() string { return string(t.method) + " " + t.text }

// follow polls a target until ctx is done or the target is forgotten. first is called after
// the first poll.
func (s *search) follow(ctx context.Context, t *target, first func()) {
	defer first()
	patience := time.Now().Add(firstPatience)
	for ctx.Err() == nil {
		began := time.Now()
		err := s.poll(ctx, t)
		for err != nil && time.Now().Before(patience) && backoff.Sleep(ctx, firstRetry) {
			err = s.poll(ctx, t)
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
		first()
		backoff.Sleep(ctx, s.pause(began))
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
	var group sync.WaitGroup
	defer group.Wait()
	for _, r := range t.servers { // in random order, so that a slow one is not always first
		if r.missed > 0 {
			continue
		}
		if err := s.calls.Acquire(ctx, 1); err != nil {
			return err
		}
		group.Go(func() {
			defer s.calls.Release(1)
			s.complete(ctx, from, r)
		})
	}
	return nil
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
	s.mu.Lock()
	addresses := t.addresses
	s.mu.Unlock()
	if t.method == direct {
		return from, s.askServer(ctx, t, addresses)
	}
	err := s.call(ctx, []string{t.url.Address()}, t.text, func(channel *uatcp.Channel, answering netip.Addr) error {
		from.address = answering
		if t.method == network { // the filters do not apply to the names of records, which are those of hosts
			return channel.FindServersOnNetwork(func(each uatcp.Application) { s.report(t, from, describedBy(each), each.DiscoveryURLs) })
		}
		return channel.FindServers(func(each uatcp.Application) {
			if a := describedBy(each); admits(s.details, a) { // others need no look-ups
				s.report(t, from, a, each.DiscoveryURLs)
			}
		})
	})
	return from, err
}

// report records a server that an answer of a target has, if it has a URL with the scheme
// opc.tcp and there is room. If the answer turns out to be none, a new one is forgotten.
func (s *search) report(t *target, from origin, a application, urls []string) {
	chosen, url, ok := choose(from, urls)
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
	r.reported, r.isLatest = a, true
}

// askServer asks a server that was found for its own description. Its URL is the address at
// which it was found, with the path that it reports.
func (s *search) askServer(ctx context.Context, t *target, addresses []string) error {
	described, err := s.describe(ctx, addresses, t.text)
	if err != nil {
		return err
	}
	a := described.application
	a.url, a.addresses = t.text, addresses
	for _, text := range described.urls {
		if reported, err := details.ParseURL(text); err == nil && reported.Port == t.url.Port && t.url.Path == "" {
			reported.Host = t.url.Host
			a.url = reported.String()
			break
		}
	}
	s.report(t, origin{url: t.url}, a, []string{t.text})
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
	for _, r := range t.servers {
		latest = append(latest, r.published)
	}
	slices.SortFunc(latest, func(a, b application) int {
		return cmp.Or(strings.Compare(a.url, b.url), strings.Compare(a.uri, b.uri))
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if !reflect.DeepEqual(latest, t.published) {
		t.published = latest
		select {
		case s.changed <- struct{}{}:
		default: // it has a value
		}
	}
	if t.method != direct || t.isAnnounced || t.failures < s.details.Misses {
		return true
	}
	delete(s.targets, t.key())
	s.admit(ctx, s.announced...)
	return false
}
