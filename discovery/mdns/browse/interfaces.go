package browse

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Interface is a network interface of this node that is up and supports multicast.
type Interface struct {
	Index int
	Name  string
	// Default reports whether the interface is used unless others are requested. That
	// excludes ports of bridges and bonds, whose traffic passes the bridge, and
	// interfaces without an IPv4 or routable IPv6 address, or only with addresses whose
	// network has no other, such as the node's ends of the Pods' interfaces.
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
	found := map[int]*listed{}
	err := dump(unix.RTM_GETLINK, func(message syscall.NetlinkMessage, attributes []syscall.NetlinkRouteAttr) {
		if message.Header.Type != unix.RTM_NEWLINK || len(message.Data) < unix.SizeofIfInfomsg {
			return
		}
		flags := binary.NativeEndian.Uint32(message.Data[8:])
		i := &listed{Interface: Interface{Index: int(binary.NativeEndian.Uint32(message.Data[4:])), Default: true}}
		for _, attribute := range attributes {
			switch attribute.Attr.Type {
			case unix.IFLA_IFNAME:
				i.Name = strings.TrimRight(string(attribute.Value), "\x00")
			case unix.IFLA_MASTER:
				i.Default = false
			}
		}
		if flags&(unix.IFF_UP|unix.IFF_RUNNING|unix.IFF_MULTICAST) == unix.IFF_UP|unix.IFF_RUNNING|unix.IFF_MULTICAST &&
			flags&(unix.IFF_LOOPBACK|unix.IFF_POINTOPOINT) == 0 {
			found[i.Index] = i
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list the network interfaces: %w", err)
	}
	err = dump(unix.RTM_GETADDR, func(message syscall.NetlinkMessage, attributes []syscall.NetlinkRouteAttr) {
		if message.Header.Type != unix.RTM_NEWADDR || len(message.Data) < unix.SizeofIfAddrmsg {
			return
		}
		if i := found[int(binary.NativeEndian.Uint32(message.Data[4:]))]; i != nil && message.Data[2]&unix.IFA_F_TENTATIVE == 0 {
			i.add(int(message.Data[1]), attributes)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list the addresses of network interfaces: %w", err)
	}
	for index, i := range found {
		routable := false
		for _, prefix := range i.prefixes {
			routable = routable || !prefix.IsSingleIP() && (prefix.Addr().Is4() || !prefix.Addr().IsLinkLocalUnicast())
		}
		i.Default = i.Default && routable
		if !i.IPv4 && !i.IPv6 {
			delete(found, index)
		}
	}
	return found, nil
}

// add adds an address with its prefix.
func (l *listed) add(bits int, attributes []syscall.NetlinkRouteAttr) {
	var address netip.Addr
	for _, attribute := range attributes {
		value, ok := netip.AddrFromSlice(attribute.Value)
		if ok && (attribute.Attr.Type == unix.IFA_LOCAL || attribute.Attr.Type == unix.IFA_ADDRESS && !address.IsValid()) {
			address = value
		}
	}
	if !address.IsValid() || bits > address.BitLen() {
		return
	}
	l.prefixes = append(l.prefixes, netip.PrefixFrom(address, bits))
	l.IPv4 = l.IPv4 || address.Is4()
	l.IPv6 = l.IPv6 || address.Is6() && address.IsLinkLocalUnicast() // the source of packets to ff02::fb
}

// dump calls visit for each answer to a request for all links or addresses.
func dump(request int, visit func(syscall.NetlinkMessage, []syscall.NetlinkRouteAttr)) error {
	table, err := syscall.NetlinkRIB(request, unix.AF_UNSPEC)
	if err != nil {
		return fmt.Errorf("netlink: %w", err)
	}
	messages, err := syscall.ParseNetlinkMessage(table)
	if err != nil {
		return fmt.Errorf("netlink: %w", err)
	}
	for _, message := range messages {
		if message.Header.Type == unix.NLMSG_DONE {
			return nil
		}
		attributes, err := syscall.ParseNetlinkRouteAttr(&message)
		if err != nil {
			return fmt.Errorf("netlink: %w", err)
		}
		visit(message, attributes)
	}
	return nil
}

// onLink reports whether an address is in one of the interface's networks. Devices with
// another address could not be reached anyway.
func onLink(address netip.Addr, prefixes []netip.Prefix) bool {
	if address.IsLinkLocalUnicast() {
		return true
	}
	networks := false
	for _, prefix := range prefixes {
		if prefix.Addr().Is4() != address.Is4() || prefix.IsSingleIP() {
			continue
		}
		if networks = true; prefix.Contains(address) {
			return true
		}
	}
	return !networks // an interface that was requested although it has no network
}

// openNotifications returns a netlink socket that can be read whenever an interface or
// an address changes.
func openNotifications() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("watch the network interfaces: %w", err)
	}
	groups := uint32(unix.RTMGRP_LINK | unix.RTMGRP_IPV4_IFADDR | unix.RTMGRP_IPV6_IFADDR)
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("watch the network interfaces: %w", err)
	}
	return os.NewFile(uintptr(fd), "netlink"), nil
}

// isOverflow reports whether the kernel has dropped notifications.
func isOverflow(err error) bool { return errors.Is(err, unix.ENOBUFS) }
