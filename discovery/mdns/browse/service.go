package browse

import (
	"cmp"
	"net/netip"
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
	// reachable: private and public ones, IPv4 before IPv6, and then link-local ones.
	// Link-local IPv6 addresses have the name of the interface as their zone.
	Addresses []netip.Addr
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

// compareAddresses puts the addresses first that are most likely to be reachable.
func compareAddresses(a, b netip.Addr) int {
	return cmp.Or(cmp.Compare(remoteness(a), remoteness(b)), a.Compare(b))
}

func remoteness(address netip.Addr) int {
	switch {
	case address.IsLinkLocalUnicast() && address.Is4():
		return 2
	case address.IsLinkLocalUnicast():
		return 3
	case address.Is4():
		return 0
	default:
		return 1
	}
}

// usable reports whether a device may have this address.
func usable(address netip.Addr) bool {
	return address.IsValid() && !address.IsUnspecified() && !address.IsMulticast() && !address.IsLoopback() &&
		!address.Is4In6() && address != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}
