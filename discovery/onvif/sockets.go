package onvif

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/ipv4"

	"akri.sh/akri/discovery/monitor"
	"akri.sh/akri/discovery/onvif/details"
	"akri.sh/akri/discovery/onvif/wsdiscovery"
	"akri.sh/akri/internal/backoff"
)

// port is the UDP port of WS-Discovery.
const port = 3702

// group is the multicast address of WS-Discovery.
var (
	group        = netip.MustParseAddr("239.255.255.250")
	groupAddress = net.UDPAddrFromAddrPort(netip.AddrPortFrom(group, port))
)

// readBufferBytes is the size of the kernel's buffers for answers, if the kernel permits
// it.
const readBufferBytes = 4 << 20

// sockets is the real network. One socket sends probes on all links and receives the
// answers, one receives Hello and Bye, and one probes the listed addresses.
type sockets struct {
	*monitor.Reporter

	settings *details.Details
	inflow   inflow
	messages chan message
	targets  []netip.Addr

	// The sockets are nil until they are needed. The first two are used by probe, which does
	// not overlap, the third one by sweep, and all by close after them.
	probes, hellos, unicast *ipv4.PacketConn

	mu    sync.Mutex
	links []link // that are probed

	ctx     context.Context // ends the readers
	cancel  context.CancelFunc
	readers sync.WaitGroup
}

func newSockets(settings *details.Details, failures *monitor.Reporter) *sockets {
	ctx, cancel := context.WithCancel(context.Background())
	return &sockets{
		settings: settings, Reporter: failures,
		messages: make(chan message, maxWaitingMessages),
		targets:  settings.Targets(),
		ctx:      ctx, cancel: cancel,
	}
}

// heard implements cameraNetwork.
func (s *sockets) heard() <-chan message { return s.messages }

// close closes all sockets and waits for the readers.
func (s *sockets) close() {
	s.cancel()
	for _, socket := range []*ipv4.PacketConn{s.probes, s.hellos, s.unicast} {
		if socket != nil {
			socket.Close()
		}
	}
	s.readers.Wait()
}

// probe implements cameraNetwork. It also notices interfaces that have come or gone. Each
// link has messages of its own: a camera that gets a copy on several, such as one in a
// network to which the node has two interfaces, would answer the first copy only, perhaps
// to an interface on which its address is foreign.
func (s *sockets) probe(ctx context.Context) {
	current, err := findLinks(s.settings)
	if s.Check(failedSocket, "list the network interfaces", err) {
		current = s.links
	}
	s.follow(current)
	if !s.open(&s.probes, "open a socket", listenProbes) {
		return
	}
	probes := make([][][]byte, len(current))
	for i := range current {
		probes[i] = newProbes()
	}
	twice(ctx, func() bool {
		var failures []error
		for i, l := range current {
			control := &ipv4.ControlMessage{IfIndex: l.index, Src: l.address.AsSlice()}
			for _, probe := range probes[i] {
				if _, err := s.probes.WriteTo(probe, control, groupAddress); err != nil {
					failures = append(failures, fmt.Errorf("%s: %w", l.name, err))
					break
				}
			}
		}
		s.Check(failedSocket, "send a probe", errors.Join(failures...))
		return true
	})
}

// twice sends something, and a copy of it after a random pause, unless ctx is done or the
// first time fails.
func twice(ctx context.Context, send func() bool) {
	if send() && backoff.Sleep(ctx, minResendDelay+rand.N(maxResendDelay-minResendDelay)) {
		send()
	}
}

// newProbes returns a probe for each type of devices, whose copies a camera answers once.
func newProbes() [][]byte {
	return [][]byte{wsdiscovery.Probe(wsdiscovery.NetworkVideoTransmitter), wsdiscovery.Probe(wsdiscovery.Device)}
}

// sweep implements cameraNetwork. Its rate is bounded.
func (s *sockets) sweep(ctx context.Context) {
	if len(s.targets) == 0 || !s.open(&s.unicast, "open a socket", listenUnicast) {
		return
	}
	probes := newProbes()
	twice(ctx, func() bool {
		const batch = 10 // of targets, each with its probes
		for i, target := range s.targets {
			if i%batch == batch-1 && !backoff.Sleep(ctx, time.Duration(batch*len(probes))*time.Second/maxProbesPerSecond) {
				return false
			}
			for _, probe := range probes {
				// An error is about an earlier probe: that host is unreachable, as most may be.
				_, _ = s.unicast.WriteTo(probe, nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(target, port)))
			}
		}
		return true
	})
}

// open opens a socket and reads from it, unless it is open already. It returns whether the
// socket is open.
func (s *sockets) open(socket **ipv4.PacketConn, what string, listen func() (*ipv4.PacketConn, error)) bool {
	if *socket == nil {
		opened, err := listen()
		if s.Check(failedSocket, what, err) {
			return false
		}
		*socket = opened
		s.readers.Go(func() { s.read(opened) })
	}
	return true
}

// listenProbes opens the socket that probes all links.
func listenProbes() (*ipv4.PacketConn, error) {
	socket, err := listenUDP("udp4")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(
		socket.SetControlMessage(ipv4.FlagDst|ipv4.FlagInterface, true),
		socket.SetMulticastLoopback(true), // a camera may be a process of this node
		socket.SetMulticastTTL(1),
	); err != nil {
		socket.Close()
		return nil, err
	}
	return socket, nil
}

// listenUnicast opens the socket that probes the listed addresses, also those of IPv6.
func listenUnicast() (*ipv4.PacketConn, error) { return listenUDP("udp") }

func listenUDP(network string) (*ipv4.PacketConn, error) {
	socket, err := net.ListenUDP(network, nil)
	if err != nil {
		return nil, err
	}
	_ = socket.SetReadBuffer(readBufferBytes) // the default works too
	return ipv4.NewPacketConn(socket), nil
}

// listenGroup opens the socket for Hello and Bye, which is bound to the group's address.
// Package net would bind it to all addresses, and the kernel would give it the unicast
// messages to other programs of the node that use the port.
func listenGroup() (*ipv4.PacketConn, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open a socket: %w", err)
	}
	file := os.NewFile(uintptr(fd), "ws-discovery")
	defer file.Close() // FilePacketConn has a copy
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return nil, fmt.Errorf("share the port: %w", err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Port: port, Addr: group.As4()}); err != nil {
		return nil, fmt.Errorf("bind to %s: %w", netip.AddrPortFrom(group, port), err)
	}
	plain, err := net.FilePacketConn(file)
	if err != nil {
		return nil, err
	}
	socket := ipv4.NewPacketConn(plain)
	if err := socket.SetControlMessage(ipv4.FlagInterface, true); err != nil {
		socket.Close()
		return nil, err
	}
	return socket, nil
}

// near reports whether a host may announce itself: any host may if foreign URLs are allowed, and
// otherwise one that is listed, or that is on the link on which its message arrived, or to whose
// address it was sent. The answer of a process of this node arrives on the loopback device.
func (s *sockets) near(from netip.Addr, arrived *ipv4.ControlMessage) bool {
	if s.settings.AllowForeignXAddrs || s.settings.Lists(from) {
		return true
	}
	if arrived == nil { // on the socket for listed addresses
		return false
	}
	to, _ := netip.AddrFromSlice(arrived.Dst)
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.links, func(l link) bool {
		return (l.index == arrived.IfIndex || l.address == to.Unmap()) && l.contains(from)
	})
}

// follow uses the links that there are now: their cameras are near, and the group is joined
// on them. Where that fails, the next call tries again.
func (s *sockets) follow(current []link) {
	s.mu.Lock()
	old := s.links
	s.links = current // before messages arrive
	s.mu.Unlock()
	if !s.open(&s.hellos, fmt.Sprintf("listen for Hello on port %d", port), listenGroup) {
		return
	}
	for _, l := range old {
		if !slices.ContainsFunc(current, func(other link) bool { return other.index == l.index }) {
			// Its error means that the kernel has left already.
			_ = s.hellos.LeaveGroup(&net.Interface{Index: l.index, Name: l.name}, groupAddress)
		}
	}
	var failures []error
	for _, l := range current {
		err := s.hellos.JoinGroup(&net.Interface{Index: l.index, Name: l.name}, groupAddress)
		if err != nil && !errors.Is(err, syscall.EADDRINUSE) { // joined before
			failures = append(failures, fmt.Errorf("%s: %w", l.name, err))
		}
	}
	s.Check(failedSocket, "join the multicast group", errors.Join(failures...))
}

// read reads from a socket until it is closed.
func (s *sockets) read(socket *ipv4.PacketConn) {
	buffer := make([]byte, maxMessageBytes)
	for {
		n, arrived, source, err := socket.ReadFrom(buffer)
		if errors.Is(err, net.ErrClosed) || s.ctx.Err() != nil {
			return
		}
		if err != nil { // about a packet that was sent before
			backoff.Sleep(s.ctx, time.Millisecond)
			continue
		}
		if from, ok := source.(*net.UDPAddr); ok {
			address := from.AddrPort().Addr().Unmap()
			s.receive(address, arrived, buffer[:n])
		}
	}
}

// receive passes the announcements in a datagram on.
func (s *sockets) receive(from netip.Addr, arrived *ipv4.ControlMessage, data []byte) {
	if !s.inflow.admits(time.Now(), from, len(data)) {
		s.Failed(failedRate, "all hosts", errors.New("too many messages arrive, in total or from one host"))
		return
	}
	announcements, err := wsdiscovery.Parse(data)
	if err != nil {
		s.Once(failedMessage, from.String(), err)
		return
	}
	if len(announcements) > 0 && (!s.near(from, arrived) || details.CheckAddress(from) != nil) {
		s.Once(failedForeign, from.String(), errors.New("not in a subnet of the interface: list it in addresses"))
		return
	}
	for _, a := range announcements {
		select {
		case s.messages <- message{from, a}:
		case <-s.ctx.Done():
			return
		}
	}
}
