package browse

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// Interface is a network interface of this node that is up and supports multicast.
type Interface struct {
	Index int
	Name  string
	// Networks are its addresses, each with its network.
	Networks []netip.Prefix
}

// listInterfaces returns the interfaces that can be used, by index.
func listInterfaces() (map[int]Interface, error) {
	const needed, excluded = net.FlagUp | net.FlagRunning | net.FlagMulticast, net.FlagLoopback | net.FlagPointToPoint
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list the network interfaces: %w", err)
	}
	found := map[int]Interface{}
	for _, each := range all {
		if each.Flags&(needed|excluded) != needed {
			continue
		}
		addresses, err := each.Addrs()
		if err != nil {
			return nil, fmt.Errorf("list the addresses of network interfaces: %w", err)
		}
		i := Interface{Index: each.Index, Name: each.Name}
		for _, address := range addresses {
			if network, err := netip.ParsePrefix(address.String()); err == nil {
				i.Networks = append(i.Networks, network)
			}
		}
		found[i.Index] = i
	}
	return found, nil
}

// Default reports whether the interface is used unless others are requested. That excludes
// interfaces without an IPv4 or routable IPv6 address, such as ports of bridges and bonds,
// or only with addresses whose network has no other, such as the node's ends of the Pods'
// interfaces.
func (i Interface) Default() bool {
	return slices.ContainsFunc(i.Networks, func(n netip.Prefix) bool {
		return !n.IsSingleIP() && (n.Addr().Is4() || !n.Addr().IsLinkLocalUnicast())
	})
}

// speaks reports whether the interface has an address that can send to the group: with
// IPv6, that is a link-local one.
func (i Interface) speaks(isIPv6 bool) bool {
	return slices.ContainsFunc(i.Networks, func(n netip.Prefix) bool {
		return n.Addr().Is6() == isIPv6 && (!isIPv6 || n.Addr().IsLinkLocalUnicast())
	})
}

// onLink reports whether an address is in one of the interface's networks. Devices with
// another address could not be reached anyway.
func (i Interface) onLink(address netip.Addr) bool {
	if address.IsLinkLocalUnicast() {
		return true
	}
	return i.contains(address) || !slices.ContainsFunc(i.Networks, func(n netip.Prefix) bool {
		return n.Addr().Is4() == address.Is4() && !n.IsSingleIP() // an interface can be requested although it has no network
	})
}

// contains reports whether an address without a zone is in one of the interface's networks.
func (i Interface) contains(address netip.Addr) bool {
	return slices.ContainsFunc(i.Networks, func(n netip.Prefix) bool { return !n.IsSingleIP() && n.Contains(address) })
}
