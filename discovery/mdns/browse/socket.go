package browse

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"

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

// received is a response from an interface.
type received struct {
	index   int
	message wire.Message
}

// socket sends and receives on one interface with one protocol.
type socket struct {
	index    int
	conn     *net.UDPConn
	group    netip.AddrPort
	limiter  *rate.Limiter
	prefixes atomic.Pointer[[]netip.Prefix]
	reader   sync.WaitGroup
}

// openSocket joins the group of mDNS on an interface, and passes the responses to out
// until close is called or ctx is done.
func openSocket(
	ctx context.Context, i Interface, isIPv6 bool, limiter *rate.Limiter, out chan<- received, failed func(string),
) (*socket, error) {
	open, group := openIPv4, groupIPv4
	if isIPv6 {
		open, group = openIPv6, groupIPv6 // the socket is bound to the interface
	}
	fd, err := open(i.Index)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "mdns")
	defer file.Close() // FilePacketConn duplicates it
	conn, err := net.FilePacketConn(file)
	if err != nil {
		return nil, fmt.Errorf("open a socket: %w", err)
	}
	udp, ok := conn.(*net.UDPConn)
	if !ok {
		return nil, errors.Join(errors.New("the socket is not a UDP socket"), conn.Close())
	}
	s := &socket{index: i.Index, conn: udp, group: netip.AddrPortFrom(group, port), limiter: limiter}
	s.setPrefixes(nil)
	s.reader.Go(func() { s.read(ctx, out, failed) })
	return s, nil
}

// setPrefixes sets the networks from which responses are accepted.
func (s *socket) setPrefixes(prefixes []netip.Prefix) { s.prefixes.Store(&prefixes) }

func (s *socket) send(packet []byte) error {
	_, err := s.conn.WriteToUDPAddrPort(packet, s.group)
	return err
}

// close returns when nothing more is passed on. The context must be done, or the channel
// be read until then.
func (s *socket) close() {
	s.conn.Close()
	s.reader.Wait()
}

// read passes on the responses, until the socket is closed.
func (s *socket) read(ctx context.Context, out chan<- received, failed func(string)) {
	buffer := make([]byte, maxPacketBytes)
	for {
		count, from, err := s.conn.ReadFromUDPAddrPort(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || !wire.IsResponse(buffer[:count]) {
			continue // such as ENETDOWN, which a socket reports once
		}
		message, reason := s.accept(buffer[:count], from)
		if reason != "" {
			failed(reason)
			continue
		}
		select {
		case out <- received{s.index, message}:
		case <-ctx.Done():
			return
		}
	}
}

// accept reads a response, or returns the reason not to.
func (s *socket) accept(packet []byte, from netip.AddrPort) (message wire.Message, reason string) {
	if from.Port() != port || !onLink(from.Addr().Unmap().WithZone(""), *s.prefixes.Load()) {
		return wire.Message{}, FailedForeign
	}
	if !s.limiter.Allow() {
		return wire.Message{}, FailedRate
	}
	message, err := wire.Parse(packet)
	if err != nil {
		return wire.Message{}, FailedMalformed
	}
	return message, ""
}

// The sockets are bound to the group instead of any address, for two reasons: they receive
// only what was sent to the group, which no router forwards, and they do not take unicast
// packets from other programs of the node that use mDNS. Package net cannot do that.

func openIPv4(index int) (int, error) {
	group := groupIPv4.As4()
	request := &unix.IPMreqn{Multiaddr: group, Ifindex: int32(index)}
	return open(unix.AF_INET, &unix.SockaddrInet4{Port: port, Addr: group}, func(fd int) error {
		return errors.Join(
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX, index),
			unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_ALL, 0), // nothing from other interfaces
			unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_TTL, 255),
			unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_LOOP, 1), // to other programs of the node
			unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_IF, request),
			unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, request),
		)
	})
}

func openIPv6(index int) (int, error) {
	group := groupIPv6.As16()
	address := &unix.SockaddrInet6{Port: port, Addr: group, ZoneId: uint32(index)} // the zone restricts it to the interface
	return open(unix.AF_INET6, address, func(fd int) error {
		return errors.Join(
			unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1),
			unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_HOPS, 255),
			unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_LOOP, 1),
			unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_IF, index),
			unix.SetsockoptIPv6Mreq(fd, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP,
				&unix.IPv6Mreq{Multiaddr: group, Interface: uint32(index)}),
		)
	})
}

// open returns a bound socket.
func open(family int, address unix.Sockaddr, configure func(fd int) error) (int, error) {
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("open a socket: %w", err)
	}
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1), // avahi and others use the port, too
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1),
		configure(fd),
	)
	if err == nil {
		err = unix.Bind(fd, address)
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("join the group of mDNS: %w", err)
	}
	return fd, nil
}
