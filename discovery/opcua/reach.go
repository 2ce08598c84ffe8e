package opcua

import (
	"cmp"
	"net/netip"
	"strings"

	"akri.sh/akri/discovery/opcua/details"
)

// origin is a server that has answered, and whose answer refers to URLs.
type origin struct {
	text string
	url  details.URL
	// address is the one that has answered.
	address netip.Addr
}

// choose returns the URL that identifies an application, as Akri chooses it: the first
// with the scheme opc.tcp. Unlike Akri, it prefers URLs that are not the loopback device
// of another machine.
func choose(from origin, urls []string) (text string, chosen details.URL, ok bool) {
	for _, each := range urls {
		parsed, err := details.ParseURL(each)
		if err != nil {
			continue
		}
		if !isLocal(parsed.Host) || from.address.IsLoopback() {
			return each, parsed, true
		}
		if !ok {
			text, chosen, ok = each, parsed, true
		}
	}
	return text, chosen, ok
}

// needsRelocation reports whether a URL is of no use as it is: its host does not exist,
// or it is the loopback device of another machine.
func needsRelocation(from origin, chosen details.URL, isMissing bool) bool {
	return isMissing || isLocal(chosen.Host) && !from.address.IsLoopback()
}

// relocate replaces the host of a URL by the host that has answered. If the URL has the
// port that was asked, the result is the same text as Akri's.
func relocate(from origin, chosen details.URL) (string, details.URL) {
	chosen.Host = from.url.Host
	if chosen.Port != from.url.Port || strings.Trim(from.url.Path, "/") != "" {
		return chosen.String(), chosen
	}
	// Akri appends the path to the text of the URL that was asked.
	chosen.Path = cmp.Or(chosen.Path, from.url.Path)
	return strings.TrimSuffix(from.text, "/") + chosen.Path, chosen
}

// isLocal reports whether a host is the loopback device or the unspecified address.
func isLocal(host string) bool {
	name := strings.TrimSuffix(strings.ToLower(host), ".")
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && (addr.Unmap().IsLoopback() || addr.IsUnspecified())
}

// reachable returns the addresses of a URL to which the handler may connect because a
// server refers to it: those of that server itself, and those that the author allows.
// Connections use the addresses, not the name, which might resolve to others later.
func reachable(from origin, target details.URL, resolved []netip.Addr, allowed details.Hosts) []netip.AddrPort {
	var addresses []netip.Addr
	if strings.EqualFold(target.Host, from.url.Host) {
		addresses = append(addresses, from.address)
	} else {
		byName := allowed.Name(target.Host)
		for _, addr := range resolved {
			if byName || addr == from.address || allowed.Addr(addr) {
				addresses = append(addresses, addr)
			}
		}
	}
	return withPort(addresses, target.Port)
}

// withPort returns addresses with a port.
func withPort(addresses []netip.Addr, port uint16) []netip.AddrPort {
	var all []netip.AddrPort
	for _, addr := range addresses {
		all = append(all, netip.AddrPortFrom(addr, port))
	}
	return all
}
