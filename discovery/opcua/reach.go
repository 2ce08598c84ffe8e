package opcua

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"akri.sh/akri/discovery/opcua/details"
)

// origin is a server that has answered, and whose answer refers to URLs.
type origin struct {
	candidate // that was asked
	// address is the one that has answered, one of those that were asked.
	address netip.Addr
	asked   []netip.AddrPort
	// self is what the server says about itself; its kind is empty if it says nothing.
	self     application
	isOnLink func(netip.Addr) bool
}

// candidate is a URL that a server reports: the text, and what it means.
type candidate struct {
	text string
	url  details.URL
}

// candidates returns those of the URLs of an application that can be understood.
func candidates(urls []string) []candidate {
	var all []candidate
	for _, text := range urls {
		parsed, err := details.ParseReported(text)
		if err != nil {
			continue
		}
		if _, err := details.ParseURL(text); err != nil {
			text = parsed.String()
		}
		all = append(all, candidate{text, parsed})
	}
	return all
}

// owns reports whether a host is the one that was asked.
func (o origin) owns(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, o.url.Host) || err == nil && slices.Contains(o.asked, netip.AddrPortFrom(addr.Unmap(), o.url.Port))
}

// isElsewhere reports whether a host is the loopback device of another machine, or the
// unspecified address.
func (o origin) isElsewhere(host string) bool {
	addr, _ := netip.ParseAddr(host)
	return addr.IsUnspecified() || isLoopback(host) && !o.address.IsLoopback()
}

func isLoopback(host string) bool {
	name := strings.TrimSuffix(strings.ToLower(host), ".")
	addr, _ := netip.ParseAddr(host)
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || addr.Unmap().IsLoopback()
}

// rank is lower for hosts that are more likely to be reachable from other machines.
func (o origin) rank(host string) int {
	addr, err := netip.ParseAddr(host)
	switch {
	case isLoopback(host):
		return 3
	case o.owns(host):
		return 0
	case o.isOnLink(addr.Unmap()):
		return 1
	case err != nil:
		return 2 // a name
	}
	return 3
}

// choose returns the URL that identifies another application, as Akri chooses it: the first
// with the scheme opc.tcp, unless it is the loopback device of another machine. best is one
// with the host that was asked, or else with an address in a network of the node, if there
// is one.
func (o origin) choose(all []candidate) (id, best candidate, ok bool) {
	if len(all) == 0 {
		return candidate{}, candidate{}, false
	}
	id = all[max(0, slices.IndexFunc(all, func(c candidate) bool { return !o.isElsewhere(c.url.Host) }))]
	best = slices.MinFunc(all, func(a, b candidate) int { return o.rank(a.url.Host) - o.rank(b.url.Host) })
	if o.rank(best.url.Host) > 1 {
		best = id
	}
	return id, best, true
}

// itself returns the URL of the server that has answered: the one that it reports if that
// has the host and port that were asked, and else those, which can be reached, with the
// path that it reports.
func (o origin) itself(all []candidate) candidate {
	for _, c := range all {
		if o.owns(c.url.Host) && c.url.Port == o.url.Port {
			return c
		}
	}
	if len(all) == 0 || strings.Trim(o.url.Path, "/") != "" {
		return o.candidate
	}
	return o.relocate(details.URL{Port: o.url.Port, Path: all[0].url.Path})
}

// relocate replaces the host of a URL by the host that has answered. If the URL has the
// port that was asked, the result is the same text as Akri's.
func (o origin) relocate(chosen details.URL) candidate {
	chosen.Host = o.url.Host
	if chosen.Port != o.url.Port || strings.Trim(o.url.Path, "/") != "" {
		return candidate{chosen.String(), chosen}
	}
	// Akri appends the path to the text of the URL that was asked.
	chosen.Path = cmp.Or(chosen.Path, o.url.Path)
	return candidate{strings.TrimSuffix(o.text, "/") + chosen.Path, chosen}
}

// reachable returns the addresses of a URL to which the handler may connect because a
// server refers to it: those of that server itself, and those that the author allows.
// Connections use the addresses, not the name, which might resolve to others later.
func reachable(from origin, target details.URL, resolved []netip.Addr, allowed details.Hosts) []netip.AddrPort {
	var addresses []netip.Addr
	byName := allowed.Name(target.Host)
	for _, addr := range resolved {
		if byName || addr == from.address || allowed.Addr(addr) {
			addresses = append(addresses, addr)
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
