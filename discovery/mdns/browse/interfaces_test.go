package browse

import (
	"net/netip"
	"strings"
	"testing"
)

// TestInterfaceRules checks which interfaces are used by default, with which protocols, and
// whose responses are accepted on them.
func TestInterfaceRules(t *testing.T) {
	for name, tc := range map[string]struct {
		networks    string
		isDefault   bool
		speaks      string
		here, there string // addresses of senders that are accepted, and of others
	}{
		"no address":           {"", false, "", "192.0.2.7 2001:db8::7 fe80::7", ""},
		"IPv4":                 {"192.0.2.1/24", true, "IPv4", "192.0.2.7 169.254.0.7", "198.51.100.7"},
		"two networks":         {"192.0.2.1/24 198.51.100.1/24", true, "IPv4", "192.0.2.7 198.51.100.7", "203.0.113.7"},
		"a port of a bridge":   {"fe80::1/64", false, "IPv6", "fe80::7 192.0.2.7", "2001:db8::7"},
		"routable IPv6":        {"2001:db8::1/64 fe80::1/64", true, "IPv6", "2001:db8::7 fe80::7", "2001:db8:1::7"},
		"tentative IPv6":       {"2001:db8::1/64", true, "", "2001:db8::7", "2001:db8:1::7"},
		"the end of a Pod's":   {"192.0.2.1/32 2001:db8::1/128 fe80::1/64", false, "IPv4 IPv6", "192.0.2.7 fe80::7", "2001:db8::7"},
		"IPv4 without a route": {"169.254.0.1/16", true, "IPv4", "169.254.0.7", "192.0.2.7"},
	} {
		i := Interface{Name: "eth0"}
		for text := range strings.FieldsSeq(tc.networks) {
			i.Networks = append(i.Networks, netip.MustParsePrefix(text))
		}
		ipv4, ipv6 := strings.Contains(tc.speaks, "IPv4"), strings.Contains(tc.speaks, "IPv6")
		if i.Default() != tc.isDefault || i.speaks(false) != ipv4 || i.speaks(true) != ipv6 {
			t.Errorf("%s: by default: %t, IPv4: %t, IPv6: %t", name, i.Default(), i.speaks(false), i.speaks(true))
		}
		for addresses, want := range map[string]bool{tc.here: true, tc.there: false} {
			for text := range strings.FieldsSeq(addresses) {
				if got := i.onLink(netip.MustParseAddr(text)); got != want {
					t.Errorf("%s: a response from %s: accepted: %t", name, text, got)
				}
			}
		}
	}
}
