package onvif

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"testing"

	"golang.org/x/net/ipv4"

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
	s := newSockets(&details.Details{}, silent(func(string) { failures++ }))
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

// TestNear has a node with two links. A host counts only on its own: by the address that it
// answers, or by the interface on which it says Hello.
func TestNear(t *testing.T) {
	s := newSockets(&details.Details{}, silent(func(string) {}))
	defer s.close()
	for n := range 2 {
		address := netip.AddrFrom4([4]byte{10, 0, byte(n), 1})
		s.links = append(s.links, link{index: n + 1, address: address, subnets: []netip.Prefix{netip.PrefixFrom(address, 24)}})
	}
	first, other := netip.MustParseAddr("10.0.0.5"), netip.MustParseAddr("10.0.9.5")
	for n, l := range s.links {
		for what, arrived := range map[string]*ipv4.ControlMessage{"answers": {Dst: l.address.AsSlice()}, "says Hello": {IfIndex: l.index}} {
			if got := s.near(first, arrived); got != (n == 0) {
				t.Errorf("%s %s on link %d: near is %v", first, what, n, got)
			}
			if s.near(other, arrived) {
				t.Errorf("%s %s, and is near on link %d", other, what, n)
			}
		}
	}
	for text, want := range map[string]bool{"": false, "addresses: [10.0.9.0/28]": true, "allowForeignXAddrs: true": true} {
		var err error
		if s.settings, err = details.Parse(text); err != nil {
			t.Fatal(err)
		}
		hello := `<Envelope><Body><Hello><EndpointReference><Address>1</Address></EndpointReference></Hello></Body></Envelope>`
		s.receive(other, nil, []byte(hello))
		s.receive(netip.MustParseAddr("127.0.0.1"), nil, []byte(hello)) // which is the node itself
		if got := len(s.messages) > 0; got != want {
			t.Errorf("with %q, an announcement of %s is accepted: %v", text, other, got)
		}
		for len(s.messages) > 0 {
			if from := (<-s.messages).from; from != other {
				t.Errorf("with %q, an announcement of %s is accepted", text, from)
			}
		}
	}
}
