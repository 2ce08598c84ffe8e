package opcua

import (
	"context"
	"net/netip"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"akri.sh/akri/discovery/handlertest"
	"akri.sh/akri/discovery/mdns/browse"
	"akri.sh/akri/discovery/monitor"
)

// announcedAt returns the targets of servers that announce themselves at addresses of a
// network.
func announcedAt(network byte, count int) []*target {
	var services []browse.Service
	for i := range count {
		address := netip.AddrFrom4([4]byte{10, network, byte(i >> 8), byte(i)})
		services = append(services, browse.Service{Port: 4840, Addresses: []netip.Addr{address}, OnLink: 1})
	}
	return announced(services, 0)
}

// TestAnnouncedWithoutRoom has servers that announce themselves while others have taken all
// room, and are not announced again later.
func TestAnnouncedWithoutRoom(t *testing.T) {
	registry := prometheus.NewRegistry()
	s := newSearch(New(Options{Metrics: monitor.New(registry)}), parse(t, "opcuaDiscoveryMethod: {mdns: {}}"))
	ended, cancel := context.WithCancel(t.Context())
	cancel() // nothing is polled
	defer s.running.Wait()
	old, added := announcedAt(1, maxFound), announcedAt(2, 3)
	s.announce(ended, old)
	if n := handlertest.Failures(t, registry)[reasonTooMany]; n != 0 {
		t.Errorf("%v were counted as too many", n)
	}
	s.announce(ended, added)
	if n := handlertest.Failures(t, registry)[reasonTooMany]; len(s.targets) != maxFound || n != 1 {
		t.Fatalf("%d targets, want %d; %v were counted as too many", len(s.targets), maxFound, n)
	}
	silence := func(targets []*target) {
		for _, t := range targets {
			t.failures = s.details.Misses
			s.publish(ended, t)
		}
	}
	silence(old[:2])
	if len(s.targets) != maxFound || s.targets[added[0].key()] == nil || s.targets[added[2].key()] != nil {
		t.Fatalf("%d targets after two have made room", len(s.targets))
	}
	s.announce(ended, added[1:])
	silence(old[2:])
	silence(added[:1])
	var left []string
	for _, t := range s.targets {
		left = append(left, t.text)
	}
	slices.Sort(left)
	if want := []string{added[1].text, added[2].text}; !slices.Equal(left, want) {
		t.Errorf("the targets are %q, want those that are announced, %q", left, want)
	}
}

// TestAnnouncedAgain checks that a server that is announced with another address is asked there too.
func TestAnnouncedAgain(t *testing.T) {
	s := newSearch(New(Options{}), parse(t, "opcuaDiscoveryMethod: {mdns: {}}"))
	ended, cancel := context.WithCancel(t.Context())
	cancel() // nothing is polled
	defer s.running.Wait()
	s.announce(ended, announcedAt(1, 1))
	again := announcedAt(1, 1)
	again[0].addresses = append(again[0].addresses, netip.MustParseAddrPort("10.2.0.1:4840"))
	s.announce(ended, again)
	for _, target := range s.targets {
		if !slices.Equal(target.addresses, again[0].addresses) {
			t.Errorf("the addresses are %v, want %v", target.addresses, again[0].addresses)
		}
	}
}

// TestOrder checks that servers are ordered by their targets, and then by their URLs.
func TestOrder(t *testing.T) {
	s := newSearch(New(Options{}), parse(t, "opcuaDiscoveryMethod: {standard: {}}"))
	for order, urls := range map[int][]string{1: {"c", "a"}, 0: {"z", "b"}} {
		x := &target{method: standard, candidate: candidate{text: urls[0]}, order: order, servers: map[string]*server{}}
		for _, url := range urls {
			x.servers[url] = &server{published: &application{url: url}}
		}
		s.targets[x.key()] = x
		s.publish(t.Context(), x)
	}
	var got []string
	all, _ := s.current()
	for _, a := range all {
		got = append(got, a.url)
	}
	if want := []string{"b", "z", "a", "c"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want the first target's first, %q", got, want)
	}
}
