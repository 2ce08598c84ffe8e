package details

import (
	"net/netip"
	"regexp"
	"strings"
)

// MatchesAddress reports whether an item of ipAddresses, an address or a range, contains the
// address of a device.
func MatchesAddress(item, value string) bool {
	prefix, err := parsePrefix(item)
	address, _ := netip.ParseAddr(value)
	return err == nil && prefix.Contains(address.Unmap().WithZone(""))
}

func wrongAddress(item string) (cause, hint string) {
	if _, err := parsePrefix(item); err == nil {
		return "", ""
	}
	return "an IP address or range", "write an address such as 10.0.0.5, or a range such as 10.0.0.0/28; host names, ports and * do not count"
}

// MatchesMAC compares MAC addresses, whatever is between their digits: cameras write colons,
// hyphens or nothing.
func MatchesMAC(item, value string) bool { return digits(item) == digits(value) }

var (
	separators = strings.NewReplacer(":", "", "-", "", ".", "")
	macDigits  = regexp.MustCompile(`^[0-9a-f]{12}$`)
)

func digits(mac string) string { return strings.ToLower(separators.Replace(mac)) }

func wrongMAC(item string) (cause, hint string) {
	if macDigits.MatchString(digits(item)) {
		return "", ""
	}
	return "a MAC address", "write all of its six bytes, such as 02:00:5e:10:00:01"
}

// wrongScope returns why a scope, which is a URI, cannot be announced.
func wrongScope(item string) (cause, hint string) {
	const root = "onvif://www.onvif.org/"
	escaped := strings.ReplaceAll(item, " ", "%20")
	if !strings.ContainsAny(item, ":*") {
		escaped = root + strings.TrimPrefix(escaped, "/")
	}
	if escaped == item {
		return "", ""
	}
	return "a scope", "did you mean " + escaped + "?"
}
