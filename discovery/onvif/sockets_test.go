package onvif

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"syscall"
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
	s := newSockets(&details.Details{}, func(string) { failures++ }, slog.New(slog.DiscardHandler))
	defer s.close()
	missing := link{index: 1 << 30, name: "missing", address: netip.MustParseAddr("10.0.0.1")}
	usable := link{index: loopback.Index, name: loopback.Name, address: netip.MustParseAddr("127.0.0.1")}
	joined := func(when string, want bool) {
		t.Helper()
		err := s.hellos.JoinGroup(loopback, groupAddress)
		if errors.Is(err, syscall.EADDRINUSE) != want {
			t.Errorf("%s, to join the group on the loopback device again gives %v; joined before: want %v", when, err, want)
		}
	}
	for attempt := 1; attempt <= 3; attempt++ {
		s.follow([]link{missing, usable})
		joined(fmt.Sprintf("after attempt %d", attempt), true)
		if failures != attempt {
			t.Errorf("%d failures after %d attempts", failures, attempt)
		}
	}
	usable.address = netip.MustParseAddr("127.0.0.2") // joined before
	s.follow([]link{usable})
	joined("after a change of its address", true)
	if failures != 3 {
		t.Errorf("after a change of its address, %d failures", failures)
	}
	s.follow(nil)
	joined("after it has disappeared", false)
	s.follow([]link{missing, usable})
	joined("after leaving and joining again", true)
	if failures != 4 {
		t.Errorf("after leaving and joining again, %d failures", failures)
	}
}
