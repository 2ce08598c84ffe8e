package opcua

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"time"

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
	candidate
	order int

	// The goroutine in follow owns these.
	name     name               // of the URL's host
	self     application        // what it says about itself
	next     time.Time          // when it is asked for that again
	servers  map[string]*server // that it reports, by URL and application URI
	failures int                // in a row
	patience time.Time          // until when a failure is not believed

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
	interval := time.Duration(s.details.IntervalSeconds) * time.Second
	t.patience = time.Now().Add(firstPatience)
	for ctx.Err() == nil {
		began := time.Now()
		err := s.poll(ctx, t)
		if err != nil && time.Now().Before(t.patience) && backoff.Sleep(ctx, minPause) {
			continue
		}
		t.patience = time.Time{}
		if ctx.Err() != nil {
			return
		}
		s.handler.options.Metrics.Scanned(began)
		if t.failures++; !s.failures.Check(reason(err), t.key(), err) {
			t.failures = 0
		}
		if !s.publish(ctx, t) {
			return
		}
		backoff.Sleep(ctx, max(time.Until(began.Add(interval*9/10+rand.N(interval/5))), minPause))
	}
}

// poll asks a target, and completes what it reports. Nothing is published meanwhile: until
// then, a server that is known stays as it was.
func (s *search) poll(ctx context.Context, t *target) error {
	from, err := s.ask(ctx, t)
	s.judge(t, err == nil)
	if err != nil {
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
		if r.missed == 0 && r.id.text != "" {
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
	s.mu.Lock()
	from := origin{candidate: t.candidate, asked: t.addresses, isOnLink: onLink()}
	s.mu.Unlock()
	if t.method != direct {
		if err := s.resolve(ctx, &t.name, t.url.Host); len(t.name.addresses) == 0 {
			return from, err
		}
		from.asked = withPort(t.name.addresses, t.url.Port)
	}
	if err := s.askSelf(ctx, t, from.asked); err != nil {
		return from, err
	}
	from.self = t.self
	if t.method == direct {
		s.report(t, from, from.self, true)
		return from, nil
	}
	count, isFound := 0, from.self.kind == ""
	err := s.call(ctx, from.asked, t.text, func(channel *uatcp.Channel, answering netip.Addr) error {
		from.address = answering
		if t.method == network { // the filters do not apply to the names of records, which are those of hosts
			return channel.FindServersOnNetwork(func(each uatcp.Application) { s.report(t, from, describedBy(each), false) })
		}
		return channel.FindServers(func(each uatcp.Application) {
			a := describedBy(each)
			isSelf := !isFound && a.uri == from.self.uri // others may have the same URI
			count, isFound = count+1, isFound || isSelf
			if admits(s.details, a) { // others need no look-ups
				s.report(t, from, a, isSelf)
			}
		})
	})
	var status uatcp.StatusCode
	hasAnswered := err == nil || errors.As(err, &status)
	if hasAnswered && !time.Now().Before(t.next) {
		t.next = soon()
	}
	if t.method == standard && count == 0 && hasAnswered && from.self.kind != "" && admits(s.details, from.self) {
		s.report(t, from, from.self, true) // it does not say which servers it knows, but answers
		return from, nil
	}
	return from, err
}

// askSelf asks a server for its own description: one that was found each time, others from
// time to time. A server that lists others may have none, or not answer such a question, so that
// those can be read when it has failed for firstPatience.
func (s *search) askSelf(ctx context.Context, t *target, addresses []netip.AddrPort) error {
	if t.method == network || t.method == standard && time.Now().Before(t.next) {
		return nil
	}
	self, err := s.describe(ctx, addresses, t.text)
	operation, _ := errors.AsType[*net.OpError](err)
	isAway := operation != nil && operation.Op == "dial"
	mayAnswer := time.Now().Add(minPause).Before(t.patience) && !errors.Is(err, uatcp.ErrMalformed)
	switch {
	case err == nil:
		t.self = self
	case t.method == direct || isAway || t.next.IsZero() && mayAnswer:
		return err
	case t.next.IsZero():
		s.failed(err)
	}
	return nil
}

// report records a server that an answer of a target has, if there is room: the target
// itself, or another one. If the answer turns out to be none, a new one is forgotten.
func (s *search) report(t *target, from origin, a application, isSelf bool) {
	id, best, ok := from.choose(a.urls)
	moved := from.relocate(id.url)
	if isSelf {
		moved = from.itself(a.urls)
		if t.method == direct { // its URL has the address at which it was found
			moved.url.Host = t.url.Host
			moved.text = moved.url.String()
		}
		// A name that exists identifies it, as in Akri, but it can be reached where it was asked,
		// except at a loopback device, which each node has: what tells others more is better.
		rank, isLocal := from.rank(id.url.Host), from.address.IsLoopback()
		isTelling := ok && t.method != direct && (rank == 2 || isLocal && rank == 1)
		if best = id; !isTelling || !isLocal {
			best = moved
		}
		if !isTelling {
			id = moved
		}
		ok = true
	}
	r := t.servers[id.text+" "+a.uri]
	if r == nil {
		if !s.servers.TryAcquire(1) {
			s.handler.options.Metrics.Failed(reasonTooMany)
			return
		}
		r = &server{missed: s.details.Misses - 1}
		t.servers[id.text+" "+a.uri] = r
		if !ok {
			s.failures.Failed(reasonNoURL, t.text, fmt.Errorf("%q, %s is left out: no URL with opc.tcp can be understood", a.name, a.uri))
		}
	}
	if !isSelf {
		a.urls = nil // those that count are chosen
	}
	if r.best != best {
		r.next = time.Time{} // its URL changes now
	}
	r.id, r.moved, r.best, r.isSelf, r.isLatest, r.reported = id, moved, best, isSelf, true, a
}

// publish makes the servers that a target reports known to the search. It reports false if
// the target is forgotten: it was found, has not answered for long, and mDNS does not
// announce it any longer.
func (s *search) publish(ctx context.Context, t *target) bool {
	var latest []application
	for _, key := range slices.Sorted(maps.Keys(t.servers)) {
		if r := t.servers[key]; r.published != nil {
			latest = append(latest, *r.published)
		}
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
