package details

import (
	"net/netip"
	"regexp"
	"strings"

	shared "akri.sh/akri/discovery/details"
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

// MatchesScope reports whether an item of scopes matches a scope that a device announces, which
// is a URI. Items such as location/hall are below that of ONVIF.
func MatchesScope(item, value string) bool {
	if !strings.HasPrefix(item, "*") && !strings.Contains(item, ":") {
		item = "onvif://www.onvif.org/" + strings.TrimPrefix(item, "/")
	}
	return shared.Glob(strings.ReplaceAll(item, " ", "%20"), value)
}
