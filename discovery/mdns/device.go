package mdns

import (
	"net/netip"
	"strconv"
	"strings"
	"unicode"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/mdns/browse"
)

// The properties of devices.
const (
	PropertyService   = "MDNS_SERVICE"
	PropertyInstance  = "MDNS_INSTANCE"
	PropertyHost      = "MDNS_HOST"
	PropertyPort      = "MDNS_PORT"
	PropertyAddress   = "MDNS_ADDRESS"
	PropertyAddresses = "MDNS_ADDRESSES"
	PropertyURL       = "MDNS_URL"
	// PrefixTXT precedes the keys of TXT records.
	PrefixTXT = "MDNS_TXT_"
)

const (
	// maxAddresses bounds the addresses of a device.
	maxAddresses = 16
	// maxKeys bounds the keys of the TXT record that become properties.
	maxKeys = 64
)

// device returns the device of a service. Its ID is the service's full name in lower
// case: it remains the same when the address, the port or the TXT record changes, and it
// is the same on all nodes.
func device(s browse.Service) discovery.Device {
	addresses := reported(s.Addresses)
	properties := map[string]string{
		PropertyService:   printable(s.Type),
		PropertyInstance:  printable(s.Instance),
		PropertyHost:      s.Host,
		PropertyPort:      strconv.Itoa(int(s.Port)),
		PropertyAddress:   addresses[0].String(),
		PropertyAddresses: join(addresses),

		discovery.DisplayName: printable(s.Instance) + " at " + addresses[0].String(),
	}
	if url := serviceURL(s, addresses[0]); url != "" {
		properties[PropertyURL] = url
	}
	addTXT(properties, s)
	return discovery.Device{ID: s.Key(), Properties: properties}
}

// reported returns the addresses to report: link-local IPv6 addresses only if there is no
// other, since they are of use only on this node's interface.
func reported(addresses []netip.Addr) []netip.Addr {
	last := len(addresses)
	for last > 1 && addresses[last-1].Is6() && addresses[last-1].IsLinkLocalUnicast() {
		last--
	}
	return addresses[:min(last, maxAddresses)]
}

func join(addresses []netip.Addr) string {
	texts := make([]string, 0, len(addresses))
	for _, address := range addresses {
		texts = append(texts, address.String())
	}
	return strings.Join(texts, ",")
}

// addTXT adds the keys of the TXT record. Of two keys with the same variable, the first
// one counts.
func addTXT(properties map[string]string, s browse.Service) {
	for _, pair := range s.TXT[:min(len(s.TXT), maxKeys)] {
		name := PrefixTXT + variable(pair.Key)
		if _, taken := properties[name]; !taken {
			properties[name] = printable(pair.Value)
		}
	}
}

// variable returns the part of an environment variable's name for a key: letters in upper
// case, digits, and _ for all else.
func variable(key string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r + 'A' - 'a'
		case 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return r
		default:
			return '_'
		}
	}, key)
}

// printable returns a text without what the value of a property cannot contain: bytes that
// are not UTF-8, and control characters, become U+FFFD.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(text, string(unicode.ReplacementChar)))
}
