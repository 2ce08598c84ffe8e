package browse

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"akri.sh/akri/discovery/mdns/browse/wire"
)

// Service is a service that has announced itself. Its values come from the network:
// nothing in it can be trusted.
type Service struct {
	// Instance is the name that the service shows to people, such as "Printer 2.1". It
	// may contain any bytes.
	Instance string
	// Type is the type of the service, such as "_http._tcp", without a sub-type.
	Type string
	// Host is the name of the host, such as "printer.local", with escapes as in
	// [wire.Name].
	Host string
	// Port is the port of the service.
	Port uint16
	// Addresses are the host's addresses, with those first that are likely to be
	// reachable: those in a network of an interface on which the service was found, then
	// other private and public ones, IPv4 before IPv6, and then link-local ones.
	// Link-local IPv6 addresses have the name of the interface as their zone.
	Addresses []netip.Addr
	// OnLink is how many of the addresses are in such a network, not counting link-local
	// IPv6 addresses.
	OnLink int
	// TXT has the keys and values of the service, in the order of the service.
	TXT []wire.Pair

	name wire.Name
}

// Key returns the full name in lower case, such as `printer 2\.1._http._tcp.local`, with
// escapes as in [wire.Name]. Services are the same if their keys are equal.
func (s Service) Key() string { return s.name.Key() }

// Text returns the value of a key of the TXT record, whose case does not matter.
func (s Service) Text(key string) (value string, found bool) {
	for _, pair := range s.TXT {
		if strings.EqualFold(pair.Key, key) {
			return pair.Value, true
		}
	}
	return "", false
}

// order sorts the addresses. The argument says whether each is in a network of the interface.
func (s *Service) order(addresses map[netip.Addr]bool) {
	remoteness := func(address netip.Addr) int {
		switch {
		case addresses[address]:
			return 0
		case address.IsLinkLocalUnicast():
			return 2
		}
		return 1
	}
	s.Addresses = slices.SortedFunc(maps.Keys(addresses), func(a, b netip.Addr) int {
		return cmp.Or(cmp.Compare(remoteness(a), remoteness(b)), a.Compare(b)) // IPv4 is less than IPv6
	})
	for s.OnLink = 0; s.OnLink < len(s.Addresses) && addresses[s.Addresses[s.OnLink]]; {
		s.OnLink++
	}
}

// usable reports whether a device may have this address.
func usable(address netip.Addr) bool {
	return address.IsValid() && !address.IsUnspecified() && !address.IsMulticast() && !address.IsLoopback() &&
		!address.Is4In6() && address != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}
