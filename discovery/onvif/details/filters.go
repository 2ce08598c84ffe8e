package details

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	"akri.sh/akri/discovery/details"
	"akri.sh/akri/internal/text"
)

// checkItems returns the mistakes in a filter, which may be nil, and items that no camera can have.
// Those are only ignored as long as cameras can pass without them.
func (d *Details) checkItems(path string, filter *details.Filter, possible func(item string) bool, want, hint string) error {
	if err := filter.Check(path); filter == nil || err != nil {
		return err
	}
	var mistakes []error
	for i, item := range filter.Items {
		if !possible(item) {
			place := fmt.Sprintf("%s.items[%d]", path, i)
			mistakes = append(mistakes, details.Faultf(place, "%q is not %s", text.Truncate(item, details.MaxQuoted), want).Hintf("%s", hint))
		}
	}
	if filter.Action != details.Exclude && len(mistakes) == len(filter.Items) {
		return errors.Join(mistakes...)
	}
	d.Ignored = errors.Join(d.Ignored, errors.Join(mistakes...))
	return nil
}

// MatchesAddress reports whether an item of ipAddresses, an address or a range, contains the
// address of a device.
func MatchesAddress(item, value string) bool {
	prefix, err := parsePrefix(item)
	address, _ := netip.ParseAddr(value)
	return err == nil && prefix.Contains(address.Unmap().WithZone(""))
}

func isAddress(item string) bool { _, err := parsePrefix(item); return err == nil }

// MatchesMAC compares MAC addresses, whatever is between their digits: cameras write colons,
// hyphens or nothing.
func MatchesMAC(item, value string) bool { return digits(item) == digits(value) }

var (
	separators = strings.NewReplacer(":", "", "-", "", ".", "")
	macDigits  = regexp.MustCompile(`^[0-9a-f]{12}$`)
)

func digits(mac string) string { return strings.ToLower(separators.Replace(mac)) }

func isMAC(item string) bool { return macDigits.MatchString(digits(item)) }

// MatchesScope reports whether an item of scopes, a pattern, matches a scope of a device. Scopes
// of ONVIF's own may lack their beginning, and spaces stand for what they are in a URI.
func MatchesScope(item, value string) bool {
	item = strings.ReplaceAll(item, " ", "%20")
	return details.Glob(item, value) || details.Glob("onvif://www.onvif.org/"+strings.TrimPrefix(item, "/"), value)
}
