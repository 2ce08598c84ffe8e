package opcua

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"akri.sh/akri/discovery/opcua/details"
	"akri.sh/akri/discovery/opcua/uatcp"
)

// method is how a target is asked.
type method string

const (
	standard method = "standard" // FindServers
	network  method = "network"  // FindServersOnNetwork
	direct   method = "direct"   // the server itself, found by mDNS or a scan
)

// polledTarget is a server that is asked in each poll.
type polledTarget struct {
	method method
	text   string
	url    details.URL
	// addresses replace the URL's host, if there are any.
	addresses []netip.AddrPort
	order     int
}

// key identifies a target.
func (t polledTarget) key() string { return string(t.method) + " " + t.text }

// targetAnswer is what a target reports.
type targetAnswer struct {
	found []application
	// isPartial is set if it reports others too, which cannot be named yet.
	isPartial bool
}

// ask returns the applications that a target reports. The look-ups that its answer causes
// may take some time; those that are unfinished then can go on in the next poll.
func (s *search) ask(ctx context.Context, t polledTarget, lookups time.Duration) (targetAnswer, error) {
	addresses := textOf(t.addresses)
	if len(addresses) == 0 {
		addresses = []string{t.url.Address()}
	}
	if t.method == direct {
		return s.askServer(ctx, t, addresses)
	}
	var found []reference
	var isPartial bool
	var bytes int // of found
	from := origin{text: t.text, url: t.url}
	err := s.call(ctx, addresses, t.text, func(channel *uatcp.Channel, answering netip.Addr) (err error) {
		from.address = answering
		if t.method == network {
			found, err = s.findOnNetwork(channel, from)
		} else {
			found, err = s.find(channel, from)
		}
		// The answer itself is large, and others wait until it is freed.
		count := s.reserve(len(found))
		found, isPartial = slices.Clone(found[:count]), count < len(found)
		for _, r := range found {
			bytes += r.size() + len(r.text) + len(r.url.Host) + len(r.url.Path)
		}
		if failed := s.targetMemory.Add(bytes); failed != nil {
			return failed
		}
		return err
	})
	defer s.unreserve(len(found))
	defer func() { _ = s.targetMemory.Add(-bytes) }() // less is never too much
	if err != nil {
		return targetAnswer{}, err
	}
	limited, cancel := context.WithTimeout(ctx, lookups)
	defer cancel()
	located := s.locateAll(limited, from, found)
	return targetAnswer{located, isPartial || len(located) < len(found)}, nil
}

// reference is what an answer says about an application, without its look-ups.
type reference struct {
	application
	text string // the URL
	url  details.URL
}

// find asks for the applications that a server knows.
func (s *search) find(channel *uatcp.Channel, from origin) ([]reference, error) {
	reported, err := channel.FindServers()
	var found []reference
	for _, each := range reported {
		var r reference
		r.describe(each)
		if s.mayPass(r.application) && r.choose(from, each.DiscoveryURLs) {
			found = append(found, r)
		}
	}
	return found, err
}

// findOnNetwork asks for the servers that a discovery server has found.
func (s *search) findOnNetwork(channel *uatcp.Channel, from origin) ([]reference, error) {
	records, err := channel.FindServersOnNetwork()
	var found []reference
	for _, each := range records {
		r := reference{application: application{name: clean(each.Name)}}
		if r.choose(from, []string{each.DiscoveryURL}) {
			found = append(found, r)
		}
	}
	return found, err
}

// choose sets the URL. It reports false if there is none with the scheme opc.tcp.
func (r *reference) choose(from origin, urls []string) bool {
	var ok bool
	r.text, r.url, ok = choose(from, urls)
	return ok
}

// askServer asks a server for its own description. Its URL is the address at which it
// was found, with the path that it reports.
func (s *search) askServer(ctx context.Context, t polledTarget, addresses []string) (targetAnswer, error) {
	described, err := s.describe(ctx, addresses, t.text)
	if err != nil {
		return targetAnswer{}, err
	}
	a := application{url: t.text, addresses: t.addresses, endpoints: described.endpoints}
	a.describe(described.server)
	for _, text := range described.server.DiscoveryURLs {
		if reported, err := details.ParseURL(text); err == nil && reported.Port == t.url.Port && t.url.Path == "" {
			reported.Host = t.url.Host
			a.url = reported.String()
			break
		}
	}
	return targetAnswer{found: []application{a}}, nil
}

// mayPass reports whether an application can pass the filters. Others are not looked up.
func (s *search) mayPass(a application) bool { return admits(s.details, a) }

// locateAll makes the look-ups for the applications of an answer, and returns those with
// URLs. The order of look-ups is random, so that each has its turn if there is never time
// for all.
func (s *search) locateAll(ctx context.Context, from origin, found []reference) []application {
	var hosts []string // each once
	known := map[string]bool{}
	for _, r := range found {
		if !known[r.url.Host] {
			known[r.url.Host] = true
			hosts = append(hosts, r.url.Host)
		}
	}
	s.parallel(ctx, len(hosts), func(i int) { s.names.lookup(ctx, hosts[i]) })
	located := make([]application, len(found))
	s.parallel(ctx, len(found), func(i int) { located[i] = s.locate(ctx, from, found[i]) })
	return slices.DeleteFunc(located, func(a application) bool { return a.url == "" })
}

// locate sets the URL, the addresses and the endpoints of an application that a server
// refers to. The URL stays empty if the name of its host has not been looked up: the URL
// is the id of a device, and depends on that.
func (s *search) locate(ctx context.Context, from origin, r reference) application {
	a, text, chosen := r.application, r.text, r.url
	addresses, isMissing, isFinished := s.names.lookup(ctx, chosen.Host)
	if !isFinished {
		return a
	}
	if needsRelocation(from, chosen, isMissing) {
		text, chosen = relocate(from, chosen)
		addresses = []netip.Addr{from.address}
	}
	a.url, a.addresses = text, withPort(addresses, chosen.Port)
	permitted := reachable(from, chosen, addresses, s.details.Hosts)
	if len(permitted) == 0 {
		return a
	}
	described, ok, isFinished := s.descriptions.get(ctx, text, func(ctx context.Context) (description, error) {
		return s.describe(ctx, textOf(permitted), text)
	})
	a.isUnfinished = !isFinished
	if ok {
		a.endpoints = described.endpoints
		if !a.isKindKnown {
			a.describe(described.server)
		}
	}
	return a
}

// parallel calls do for 0 to count-1 in random order, and returns after all. All requests
// share the bound. When ctx is done, do returns at once.
func (s *search) parallel(ctx context.Context, count int, do func(i int)) {
	var group sync.WaitGroup
	for _, i := range rand.Perm(count) {
		release, err := s.lookups.Acquire(ctx)
		if err != nil {
			do(i)
			continue
		}
		group.Go(func() {
			defer release()
			do(i)
		})
	}
	group.Wait()
}

// reserve returns how many applications of an answer of this size may be looked up. It
// bounds their memory, over all targets of the request.
func (s *search) reserve(count int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	count = min(count, maxRemembered-s.reserved)
	s.reserved += count
	return count
}

func (s *search) unreserve(count int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserved -= count
}
