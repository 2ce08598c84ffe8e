package opcua

import (
	"net/netip"
	"testing"
)

// announcedAt returns the targets of servers that announce themselves at addresses of a
// network.
func announcedAt(network byte, count int) []polledTarget {
	var services []Service
	for i := range count {
		services = append(services, Service{Port: 4840, Addresses: []netip.Addr{netip.AddrFrom4([4]byte{10, network, byte(i >> 8), byte(i)})}})
	}
	return announced(services, 0, func(netip.Addr) bool { return true })
}

// TestAnnouncedWithoutRoom has servers that announce themselves while others have taken all
// room, and are not announced again later.
func TestAnnouncedWithoutRoom(t *testing.T) {
	s := newSearch(t.Context(), New(Options{Browser: make(fakeBrowser)}), parse(t, "opcuaDiscoveryMethod: {mdns: {}}"))
	old, added := announcedAt(1, maxFound), announcedAt(2, 3)
	s.announce(old)
	s.announce(added)
	if found := s.targets(); len(found) != maxFound {
		t.Fatalf("%d targets, want %d", len(found), maxFound)
	}
	silence := func(targets []polledTarget) {
		for range s.details.Misses {
			for _, each := range targets {
				s.presence.failed(each.key(), 0)
			}
		}
		s.forget()
	}
	<-s.wake
	silence(old[:2])
	if waiting := s.unknown(); len(s.targets()) != maxFound || len(s.wake) != 1 {
		t.Fatalf("%d targets, and %d of them to be asked, after two have made room", len(s.targets()), len(waiting))
	}
	s.announce(added[1:])
	silence(old[2:])
	silence(added[:1])
	if found := s.targets(); len(found) != 2 || found[0].text != added[1].text || found[1].text != added[2].text || s.waitingBytes != 0 {
		t.Errorf("the targets are %+v, want those that are announced", found)
	}
}
