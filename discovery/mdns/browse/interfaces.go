package browse

import (
	"fmt"
	"net"
	"net/netip"
)

// Interface is a network interface of this node that is up and supports multicast.
type Interface struct {
	Index int
	Name  string
	// Default reports whether the interface is used unless others are requested. That
	// excludes interfaces without an IPv4 or routable IPv6 address, such as ports of
	// bridges and bonds, or only with addresses whose network has no other, such as the
	// node's ends of the Pods' interfaces.
	Default bool
	// IPv4 and IPv6 report which protocols can be used.
	IPv4, IPv6 bool
}

// listed is an interface with the networks that it is attached to.
type listed struct {
	Interface
	prefixes []netip.Prefix
}

// listInterfaces returns the interfaces that can be used, by index.
func listInterfaces() (map[int]*listed, error) {
	const needed, excluded = net.FlagUp | net.FlagRunning | net.FlagMulticast, net.FlagLoopback | net.FlagPointToPoint
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list the network interfaces: %w", err)
	}
	found := map[int]*listed{}
	for _, i := range all {
		if i.Flags&(needed|excluded) != needed {
			continue
		}
		addresses, err := i.Addrs()
		if err != nil {
			return nil, fmt.Errorf("list the addresses of network interfaces: %w", err)
		}
		l := &listed{Interface: Interface{Index: i.Index, Name: i.Name}}
		for _, address := range addresses {
			if prefix, err := netip.ParsePrefix(address.String()); err == nil {
				l.add(prefix)
			}
		}
		if l.IPv4 || l.IPv6 {
			found[i.Index] = l
		}
	}
	return found, nil
}

// add adds an address with its network.
func (l *listed) add(prefix netip.Prefix) {
	isIPv4, isLinkLocal := prefix.Addr().Is4(), prefix.Addr().IsLinkLocalUnicast()
	l.prefixes = append(l.prefixes, prefix)
	l.IPv4 = l.IPv4 || isIPv4
	l.IPv6 = l.IPv6 || !isIPv4 && isLinkLocal // the source of packets to ff02::fb
	l.Default = l.Default || !prefix.IsSingleIP() && (isIPv4 || !isLinkLocal)
}

// onLink reports whether an address is in one of the interface's networks. Devices with
// another address could not be reached anyway.
func (l *listed) onLink(address netip.Addr) bool {
	if address.IsLinkLocalUnicast() {
		return true
	}
	networks := false
	for _, prefix := range l.prefixes {
		if prefix.Addr().Is4() != address.Is4() || prefix.IsSingleIP() {
			continue
		}
		if networks = true; prefix.Contains(address) {
			return true
		}
	}
	return !networks // an interface that was requested although it has no network
}
