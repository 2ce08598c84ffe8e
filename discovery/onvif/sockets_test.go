package onvif

import (
	"log/slog"
	"net"
	"net/netip"
	"testing"

	"akri.sh/akri/discovery/onvif/details"
)

// TestFailedJoin has a link on which the group cannot be joined, such as an interface that
// has just gone down: the other link is used, and both are tried again.
func TestFailedJoin(t *testing.T) {
	loopback, err := net.InterfaceByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	failures := 0
	s := newSockets(&details.Details{}, func(string) { failures++ }, slog.New(slog.DiscardHandler), nil)
	defer s.close()
	missing := link{index: 1 << 30, name: "missing", address: netip.MustParseAddr("10.0.0.1")}
	usable := link{index: loopback.Index, name: loopback.Name, address: netip.MustParseAddr("127.0.0.1")}
	current := map[int]link{missing.index: missing, usable.index: usable}
	for attempt := 1; attempt <= 3; attempt++ {
		s.refreshHellos(current)
		if _, found := s.joined[usable.index]; !found || len(s.joined) != 1 {
			t.Errorf("after attempt %d, the group is joined on %+v, want it on the loopback device", attempt, s.joined)
		}
		if failures != attempt {
			t.Errorf("%d failures after %d attempts", failures, attempt)
		}
	}
	usable.address = netip.MustParseAddr("127.0.0.2") // joined before
	s.refreshHellos(map[int]link{usable.index: usable})
	if !s.joined[usable.index].equal(usable) || failures != 3 {
		t.Errorf("after a change of its address, the link is %+v, with %d failures", s.joined[usable.index], failures)
	}
	s.refreshHellos(nil)
	s.refreshHellos(current)
	if len(s.joined) != 1 || failures != 4 {
		t.Errorf("after leaving and joining again: %+v, with %d failures", s.joined, failures)
	}
}
