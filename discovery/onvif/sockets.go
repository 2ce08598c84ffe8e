package onvif

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/ipv4"

	"akri.sh/akri/discovery/internal/budget"
	"akri.sh/akri/discovery/onvif/details"
	"akri.sh/akri/discovery/onvif/wsdiscovery"
	"akri.sh/akri/internal/backoff"
)

// port is the UDP port of WS-Discovery.
const port = 3702

// group is the multicast address of WS-Discovery.
var group = netip.MustParseAddr("239.255.255.250")

// readBufferBytes is the size of the kernel's buffers for answers, if the kernel permits
// it.
const readBufferBytes = 4 << 20

// sockets is the real network. A socket for each interface sends probes and receives the
// answers; one socket receives Hello and Bye; another one probes the listed addresses.
type sockets struct {
	settings *details.Details
	failed   func(reason string)
	log      *slog.Logger
	inflow   *inflow
	messages chan message
	targets  []netip.Addr

	// The following is used by probe, which does not overlap, and by close after it.
	links  map[int]*linkSocket
	hellos *ipv4.PacketConn
	// unicast is used by sweep, which does not overlap either, and by close after it.
	unicast *net.UDPConn

	mu     sync.Mutex
	joined map[int]link    // the links of hellos, by index
	warned map[string]bool // steps whose failure is in the log

	ctx     context.Context // ends the readers
	cancel  context.CancelFunc
	readers sync.WaitGroup
	// account counts the memory of readers, and of messages that wait.
	account *budget.Account
}

// linkSocket is the socket of a link.
type linkSocket struct {
	link
	*net.UDPConn
}

func newSockets(settings *details.Details, failed func(string), log *slog.Logger, account *budget.Account) *sockets {
	ctx, cancel := context.WithCancel(context.Background())
	return &sockets{
		settings: settings, failed: failed, log: log,
		inflow:   newInflow(),
		messages: make(chan message, 256),
		targets:  settings.Targets(),
		links:    map[int]*linkSocket{}, joined: map[int]link{}, warned: map[string]bool{},
		ctx: ctx, cancel: cancel, account: account,
	}
}

// heard implements cameraNetwork.
func (s *sockets) heard() <-chan message { return s.messages }

// close closes all sockets and waits for the readers.
func (s *sockets) close() {
	s.cancel()
	for _, socket := range s.links {
		socket.Close()
	}
	if s.hellos != nil {
		s.hellos.Close()
	}
	if s.unicast != nil {
		s.unicast.Close()
	}
	s.readers.Wait()
}

// probe implements cameraNetwork. It also notices interfaces that have come or gone. Each
// link has messages of its own: a camera that gets a copy on several, such as one in a
// network to which the node has two interfaces, would answer the first copy only, perhaps
// to an interface on which its address is foreign.
func (s *sockets) probe(ctx context.Context) {
	s.refresh()
	probes := make(map[int][][]byte, len(s.links))
	for index := range s.links {
		probes[index] = newProbes()
	}
	for copies := range 2 {
		if copies > 0 && !backoff.Sleep(ctx, minResendDelay+rand.N(maxResendDelay-minResendDelay)) {
			return
		}
		for kind := range probeTypes {
			for index, socket := range s.links {
				_, err := socket.WriteToUDPAddrPort(probes[index][kind], netip.AddrPortFrom(group, port))
				if s.check("send a probe on "+socket.name, err) {
					socket.Close() // the interface may be gone; refresh opens it again
					delete(s.links, index)
				}
			}
		}
	}
}

// probeTypes are the types of devices that are looked for, each with a probe of its own.
var probeTypes = []wsdiscovery.Type{wsdiscovery.NetworkVideoTransmitter, wsdiscovery.Device}

// newProbes returns a probe for each of probeTypes, whose copies a camera answers once.
func newProbes() [][]byte {
	probes := make([][]byte, len(probeTypes))
	for kind, of := range probeTypes {
		probes[kind] = wsdiscovery.Probe(of)
	}
	return probes
}

// sweep implements cameraNetwork.
func (s *sockets) sweep(ctx context.Context) {
	if len(s.targets) == 0 {
		return
	}
	if s.unicast == nil {
		socket, err := net.ListenUDP("udp", nil)
		if s.check("open a socket", err) {
			return
		}
		_ = socket.SetReadBuffer(readBufferBytes) // the default works too
		s.unicast = socket
		s.read(socket, s.settings.Lists)
	}
	probes := newProbes()
	for copies := range 2 {
		if copies > 0 && !backoff.Sleep(ctx, minResendDelay+rand.N(maxResendDelay-minResendDelay)) {
			return
		}
		for _, probe := range probes {
			if !s.probeTargets(ctx, probe) {
				return
			}
		}
	}
}

// probeTargets sends a probe to each listed address, at a bounded rate. It reports whether
// there was time for all.
func (s *sockets) probeTargets(ctx context.Context, probe []byte) bool {
	const batch = 20
	for i, target := range s.targets {
		if i%batch == batch-1 && !backoff.Sleep(ctx, batch*time.Second/maxProbesPerSecond) {
			return false
		}
		// An error is about an earlier probe: that host is unreachable, as most may be.
		_, _ = s.unicast.WriteToUDPAddrPort(probe, netip.AddrPortFrom(target, port))
	}
	return true
}

// refresh opens and closes sockets as interfaces come and go.
func (s *sockets) refresh() {
	found, err := links(s.settings)
	if s.check("list the network interfaces", err) {
		return
	}
	current := map[int]link{}
	for _, l := range found {
		current[l.index] = l
		if socket := s.links[l.index]; socket != nil && !socket.equal(l) {
			socket.Close()
			delete(s.links, l.index)
		}
		if s.links[l.index] == nil {
			socket, err := open(l)
			if !s.check("open a socket on "+l.name, err) {
				s.links[l.index] = socket
				s.read(socket.UDPConn, func(from netip.Addr) bool { return l.contains(from) })
			}
		}
	}
	for index, socket := range s.links {
		if _, exists := current[index]; !exists {
			socket.Close()
			delete(s.links, index)
		}
	}
	s.refreshHellos(current)
}

// open opens a socket that sends multicasts on a link.
func open(l link) (*linkSocket, error) {
	socket, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(l.address, 0)))
	if err != nil {
		return nil, err
	}
	wrapped := ipv4.NewPacketConn(socket)
	if err := errors.Join(
		wrapped.SetMulticastInterface(&net.Interface{Index: l.index, Name: l.name}),
		wrapped.SetMulticastLoopback(true), // a camera may be a process of this node
		wrapped.SetMulticastTTL(1),
	); err != nil {
		socket.Close()
		return nil, err
	}
	_ = socket.SetReadBuffer(readBufferBytes) // the default works too
	return &linkSocket{l, socket}, nil
}

// listenGroup opens a socket that is bound to the group's address. Package net would bind
// it to all addresses, and the kernel would give it the unicast messages to other programs
// of the node that use the port.
func listenGroup() (net.PacketConn, error) {
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
	return net.FilePacketConn(file)
}

// refreshHellos joins the group on all links. Where that fails, the next call tries again.
func (s *sockets) refreshHellos(current map[int]link) {
	if s.hellos == nil {
		socket, err := listenGroup()
		if s.check(fmt.Sprintf("listen for Hello on port %d", port), err) {
			return
		}
		s.hellos = ipv4.NewPacketConn(socket)
		if s.check("listen for Hello", s.hellos.SetControlMessage(ipv4.FlagInterface, true)) {
			s.hellos.Close()
			s.hellos = nil
			return
		}
		s.readHellos(s.hellos)
	}
	for index, l := range s.joined {
		if _, exists := current[index]; !exists {
			s.setJoined(l, false)
			// Its error means that the kernel has left already.
			_ = s.hellos.LeaveGroup(&net.Interface{Index: index, Name: l.name}, &net.UDPAddr{IP: group.AsSlice()})
		}
	}
	for index, l := range current {
		if old, found := s.joined[index]; found && old.equal(l) {
			continue
		}
		s.setJoined(l, true) // before messages arrive
		err := s.hellos.JoinGroup(&net.Interface{Index: index, Name: l.name}, &net.UDPAddr{IP: group.AsSlice()})
		if errors.Is(err, syscall.EADDRINUSE) { // joined before, with another address
			err = nil
		}
		if s.check("join the multicast group on "+l.name, err) {
			s.setJoined(l, false)
		}
	}
}

// setJoined sets whether the group is joined on a link, for the reader of hellos.
func (s *sockets) setJoined(l link, joined bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if joined {
		s.joined[l.index] = l
	} else {
		delete(s.joined, l.index)
	}
}

// startReader runs a reader, unless there is no memory for it and the request ends.
func (s *sockets) startReader(read func()) {
	if s.account.Add(readerBytes) != nil {
		return
	}
	s.readers.Go(func() {
		defer func() { _ = s.account.Add(-readerBytes) }() // less is never too much
		read()
	})
}

// parsing is held while a message is parsed: the tree may take many times its memory.
var parsing sync.Mutex

// readHellos reads from the socket of the group until it is closed.
func (s *sockets) readHellos(socket *ipv4.PacketConn) {
	s.startReader(func() {
		buffer := make([]byte, maxMessageBytes)
		for {
			n, control, from, err := socket.ReadFrom(buffer)
			if err != nil && s.readFailed(err) {
				return
			}
			source, ok := from.(*net.UDPAddr)
			if err != nil || !ok || control == nil {
				continue
			}
			s.mu.Lock()
			l, found := s.joined[control.IfIndex]
			s.mu.Unlock()
			address := source.AddrPort().Addr().Unmap()
			// What a process of this node sends arrives on the loopback device too.
			s.receive(address, found && l.contains(address), buffer[:n])
		}
	})
}

// read reads from a socket until it is closed. near reports whether a host may announce
// itself there.
func (s *sockets) read(socket *net.UDPConn, near func(netip.Addr) bool) {
	s.startReader(func() {
		buffer := make([]byte, maxMessageBytes)
		for {
			n, from, err := socket.ReadFromUDPAddrPort(buffer)
			if err != nil {
				if s.readFailed(err) {
					return
				}
				continue
			}
			address := from.Addr().Unmap()
			s.receive(address, near(address), buffer[:n])
		}
	})
}

// readFailed reports whether a reader must end. Other errors are about a packet that was
// sent before.
func (s *sockets) readFailed(err error) bool {
	return errors.Is(err, net.ErrClosed) || s.ctx.Err() != nil || !backoff.Sleep(s.ctx, time.Millisecond)
}

// receive passes the announcements in a datagram on.
func (s *sockets) receive(from netip.Addr, near bool, data []byte) {
	if !s.inflow.admits(time.Now(), from, len(data)) {
		s.failed(failedRate)
		return
	}
	parsing.Lock()
	announcements, err := wsdiscovery.Parse(data)
	parsing.Unlock()
	if err != nil {
		s.failed(failedMessage)
		return
	}
	bytes := messageCopies * len(data)
	for _, a := range announcements {
		if !near && !s.settings.AllowForeignXAddrs || details.CheckAddress(from) != nil {
			s.failed(failedForeign)
			return
		}
		if s.account.Add(bytes) != nil {
			return
		}
		select {
		case s.messages <- message{from, a, func() { _ = s.account.Add(-bytes) }}:
		case <-s.ctx.Done():
			return
		}
	}
}

// check reports whether there is an error. It counts each and logs the first of its kind.
func (s *sockets) check(what string, err error) bool {
	s.mu.Lock()
	before := s.warned[what]
	if err == nil {
		delete(s.warned, what)
	} else {
		s.warned[what] = true
	}
	s.mu.Unlock()
	if err == nil {
		return false
	}
	s.failed(failedSocket)
	if !before {
		s.log.Warn("Cannot use the network as usual; trying again", "step", what, "err", err)
	}
	return true
}
