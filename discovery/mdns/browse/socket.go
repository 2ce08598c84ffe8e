package browse

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"

	"akri.sh/akri/discovery/mdns/browse/wire"
)

// port is the port of mDNS: responses from another one are ignored (RFC 6762, 6).
const port = 5353

var (
	groupIPv4 = netip.MustParseAddr("224.0.0.251")
	groupIPv6 = netip.MustParseAddr("ff02::fb")
)

// socketID names a socket: there is one for each interface and protocol.
type socketID struct {
	index  int
	isIPv6 bool
}

// socket sends and receives on one interface with one protocol.
type socket struct {
	conn  *net.UDPConn
	group netip.AddrPort
}

func (s *socket) send(packet []byte) error {
	_, err := s.conn.WriteToUDPAddrPort(packet, s.group)
	return err
}

// read calls receive with the sender, the records and the error of each response, until the
// socket is closed.
func (s *socket) read(failed func(string), receive func(netip.AddrPort, []wire.Record, error)) {
	limiter := rate.NewLimiter(maxPacketsPerSecond, maxPacketBurst)
	buffer := make([]byte, wire.MaxPacketBytes)
	for {
		count, from, err := s.conn.ReadFromUDPAddrPort(buffer)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil || !wire.IsResponse(buffer[:count]):
			continue // such as ENETDOWN, which a socket reports once
		case !limiter.Allow():
			failed(FailedRate)
			continue
		}
		records, err := wire.ParseResponse(buffer[:count])
		receive(netip.AddrPortFrom(from.Addr().Unmap().WithZone(""), from.Port()), records, err)
	}
}

// openSocket returns a socket that has joined the group of mDNS. It is bound to the group
// instead of any address, for two reasons: it receives only what was sent to the group,
// which no router forwards, and it does not take unicast packets from other programs of
// the node that use mDNS. Package net cannot do that. Linux permits it for IPv6 only with
// an interface, so each interface has sockets of its own.
func openSocket(id socketID) (*socket, error) {
	family, join, group := unix.AF_INET, joinIPv4, groupIPv4
	if id.isIPv6 {
		family, join, group = unix.AF_INET6, joinIPv6, groupIPv6
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open a socket: %w", err)
	}
	file := os.NewFile(uintptr(fd), "mdns")
	defer file.Close() // FilePacketConn duplicates it
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1), // avahi and others use the port, too
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1),
		join(fd, id.index),
	)
	if err != nil {
		return nil, fmt.Errorf("join the group of mDNS: %w", err)
	}
	conn, err := net.FilePacketConn(file)
	if err != nil {
		return nil, fmt.Errorf("open a socket: %w", err)
	}
	udp, ok := conn.(*net.UDPConn)
	if !ok {
		return nil, errors.Join(errors.New("the socket is not a UDP socket"), conn.Close())
	}
	return &socket{udp, netip.AddrPortFrom(group, port)}, nil
}

func joinIPv4(fd, index int) error {
	group := groupIPv4.As4()
	return errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX, index),
		unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_TTL, 255),
		unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, &unix.IPMreqn{Multiaddr: group, Ifindex: int32(index)}),
		unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: group}),
	)
}

func joinIPv6(fd, index int) error {
	group := groupIPv6.As16()
	return errors.Join(
		unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_HOPS, 255),
		unix.SetsockoptIPv6Mreq(fd, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP, &unix.IPv6Mreq{Multiaddr: group, Interface: uint32(index)}),
		unix.Bind(fd, &unix.SockaddrInet6{Port: port, Addr: group, ZoneId: uint32(index)}), // the zone restricts it to the interface
	)
}
