package onvif

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"akri.sh/akri/discovery/onvif/details"
)

// link is a network interface on which cameras are looked for.
type link struct {
	index int
	name  string
	// address is the source of probes.
	address netip.Addr
	// subnets are the interface's networks. Cameras in others are reached through a
	// router and do not see the probe.
	subnets []netip.Prefix
}

// contains reports whether an address is on the link.
func (l link) contains(address netip.Addr) bool {
	return slices.ContainsFunc(l.subnets, func(subnet netip.Prefix) bool { return subnet.Contains(address) })
}

// hasNeighbors reports whether another host can be in a subnet of the link. On the node's
// end of a Pod's interface, there is often none but the node's own address.
func (l link) hasNeighbors() bool {
	return slices.ContainsFunc(l.subnets, func(subnet netip.Prefix) bool { return !subnet.IsSingleIP() })
}

// findLinks returns the interfaces with these names; or, if there are no names, all on which
// there can be a camera whose announcement counts. They are up, can multicast and have an
// IPv4 address.
func findLinks(settings *details.Details) ([]link, error) {
	names := settings.Interfaces
	wanted := func(l link) bool { return len(names) > 0 || settings.AllowForeignXAddrs || l.hasNeighbors() }
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list the network interfaces: %w", err)
	}
	var all []link
	for _, i := range interfaces {
		usable := i.Flags&net.FlagUp != 0 && i.Flags&net.FlagMulticast != 0 && i.Flags&net.FlagLoopback == 0
		if !usable || len(names) > 0 && !slices.Contains(names, i.Name) {
			continue
		}
		addresses, err := i.Addrs()
		if err != nil {
			continue // it has just disappeared
		}
		if l := (link{index: i.Index, name: i.Name}); l.add(addresses) && wanted(l) && len(all) < details.MaxInterfaces {
			all = append(all, l)
		}
	}
	return all, nil
}

// add adds the IPv4 addresses of an interface. It reports whether there are any.
func (l *link) add(addresses []net.Addr) bool {
	for _, a := range addresses {
		subnet, err := netip.ParsePrefix(a.String())
		if err != nil || !subnet.Addr().Is4() {
			continue
		}
		if !l.address.IsValid() {
			l.address = subnet.Addr()
		}
		l.subnets = append(l.subnets, subnet.Masked())
	}
	return l.address.IsValid()
}
