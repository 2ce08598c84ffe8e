package opcua

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"time"

	"akri.sh/akri/discovery/opcua/uatcp"
	"akri.sh/akri/internal/backoff"
)

const (
	// maxAddresses bounds the addresses of a server.
	maxAddresses = 16
	// lookupTimeout bounds the look-up of a name.
	lookupTimeout = 2 * time.Second
	// minMissing is how often in a row a name that was known must be missing before it
	// counts as missing: the id of a device may depend on it.
	minMissing = 3
	// completeInterval is the interval between look-ups of what a discovery server does not
	// say about a server, which rarely changes.
	completeInterval = time.Minute
)

// server is a server that a target reports.
type server struct {
	reported application // as the target reports it
	// id is the URL that identifies it, unless its host does not exist: then, moved does. best
	// is the one that is most likely to be reachable.
	id, moved, best candidate
	isSelf          bool // it is the target itself

	missed   int  // answers in a row without it
	isLatest bool // it is in the answer that is being read

	// What was looked up.
	name        name
	location    application // only the URL, the id and the addresses
	description application
	next        time.Time

	// published is nil until its name was looked up.
	published *application
}

// name is what is known about the name of a host.
type name struct {
	addresses []netip.Addr
	// isMissing is set if the name does not exist, as opposed to a failed look-up.
	isMissing bool
	missing   int // in a row
}

// complete sets what is published of a server, with what the target does not say about it:
// the addresses of its name, which decide about its URL, and its endpoints. What was known
// stays valid if a look-up fails.
func (s *search) complete(ctx context.Context, from origin, r *server) {
	if !time.Now().Before(r.next) {
		if s.calls.Acquire(ctx, 1) != nil {
			return // nothing is published any longer
		}
		r.next = soon()
		s.lookUp(ctx, from, r)
		s.calls.Release(1)
	}
	a := r.reported
	if r.isSelf {
		a.isAsked, r.description = r.location.id == r.moved.text, from.self
	}
	if a.kind == "" && r.description.kind != "" {
		a = r.description
	}
	a.id, a.url, a.addresses = r.location.id, r.location.url, r.location.addresses
	if a.uri == r.description.uri { // otherwise another application answers at the URL
		a.endpoints = r.description.endpoints
	}
	r.published = &a
}

// soon returns when to look up again what rarely changes.
func soon() time.Time { return time.Now().Add(completeInterval - rand.N(completeInterval/5)) }

// lookUp looks up the name of a server, and asks the server for its description if the
// handler may connect to it.
func (s *search) lookUp(ctx context.Context, from origin, r *server) {
	chosen, addresses := r.moved, []netip.Addr{from.address}
	switch host := r.id.url.Host; {
	case from.isElsewhere(host):
	case strings.EqualFold(host, from.url.Host):
		chosen = r.id // at the address that has answered
	default:
		if s.awaitName(ctx, r); !r.name.isMissing {
			chosen, addresses = r.id, r.name.addresses
		}
	}
	id := chosen.text
	if r.best != r.id {
		chosen, addresses = r.best, []netip.Addr{from.address}
		if addr, err := netip.ParseAddr(chosen.url.Host); err == nil {
			addresses[0] = addr.Unmap()
		}
	}
	if r.isSelf {
		r.location = application{id: id, url: chosen.url.String(), addresses: from.asked}
		return
	}
	permitted := reachable(from, chosen.url, addresses, s.details.Hosts)
	if chosen.url.String() != r.location.url || len(permitted) == 0 {
		r.description = application{} // of another server, or not permitted any longer
	}
	isAsked := strings.TrimSuffix(chosen.url.String(), "/") == strings.TrimSuffix(from.url.String(), "/")
	if isAsked && from.self.kind != "" && from.self.uri != r.reported.uri {
		id = distinctID(id, r.reported) // another application answers there
	}
	r.location = application{id: id, url: chosen.url.String(), addresses: withPort(addresses, chosen.url.Port)}
	if len(permitted) == 0 {
		return
	}
	if described, err := s.describe(ctx, permitted, chosen.text); err != nil {
		s.failed(err)
	} else {
		described.urls = nil
		r.description = described
	}
}

// awaitName looks up the name of a server. Its id depends on whether the name exists, so if DNS
// does not answer, a new server waits for a moment. Then it counts as existing, as in Akri, and
// DNS is asked again with the next poll.
func (s *search) awaitName(ctx context.Context, r *server) {
	patience := time.Now().Add(firstPatience)
	err := s.resolve(ctx, &r.name, r.id.url.Host)
	isUnknown := func() bool { return !r.name.isMissing && len(r.name.addresses) == 0 && ctx.Err() == nil }
	for isUnknown() && r.published == nil && time.Now().Before(patience) && backoff.Sleep(ctx, minPause) {
		err = s.resolve(ctx, &r.name, r.id.url.Host)
	}
	if !isUnknown() {
		return
	}
	r.next = time.Time{}
	if r.published == nil {
		s.failures.Failed(reasonResolve, r.id.text, fmt.Errorf("DNS does not answer whether the host exists; "+
			"until it does, the server has this URL as its id: %w", err))
	}
}

// resolve looks up the name of a host.
func (s *search) resolve(ctx context.Context, n *name, host string) error {
	if addr, err := netip.ParseAddr(host); err == nil {
		n.addresses = []netip.Addr{addr.Unmap()}
		return nil
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "localhost" {
		n.addresses = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
		return nil
	}
	if err := s.handler.calls.Acquire(ctx, 1); err != nil {
		return err
	}
	defer s.handler.calls.Release(1)
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	found, err := s.handler.options.Resolver.LookupNetIP(ctx, "ip", host)
	n.update(found, err)
	return err
}

// update records the result of a look-up. A failed one changes nothing.
func (n *name) update(found []netip.Addr, err error) {
	var dns *net.DNSError
	switch {
	case err == nil:
		*n = name{}
		for _, addr := range found[:min(len(found), maxAddresses)] {
			n.addresses = append(n.addresses, addr.Unmap().WithZone(""))
		}
	case errors.As(err, &dns) && dns.IsNotFound:
		n.missing++
		if len(n.addresses) == 0 || n.missing >= minMissing {
			*n = name{isMissing: true}
		}
	}
}

// describe asks a server for its description and endpoints.
func (s *search) describe(ctx context.Context, addresses []netip.AddrPort, url string) (application, error) {
	var a application
	var policies []string
	add := func(each uatcp.Endpoint) {
		if a.kind == "" {
			a = describedBy(each.Server)
		}
		policies = appendPolicy(policies, each)
	}
	err := s.call(ctx, addresses, url, func(channel *uatcp.Channel, _ netip.Addr) error {
		var status uatcp.StatusCode
		if err := channel.GetEndpoints(url, add); err != nil && !errors.As(err, &status) || a.kind != "" {
			return err
		}
		// Some servers have endpoints only for the exact URL that they know.
		servers := 0
		if err := channel.FindServers(func(each uatcp.Application) { servers++; a = describedBy(each) }); err != nil {
			return err
		}
		if servers != 1 {
			return fmt.Errorf("%w: no endpoint, and %d servers", uatcp.ErrMalformed, servers)
		}
		if len(a.urls) > 0 {
			if err := channel.GetEndpoints(a.urls[0].text, add); err != nil && ctx.Err() == nil {
				s.failed(err) // the description is enough
			}
		}
		return nil
	})
	a.endpoints = summarize(policies)
	return a, err
}
