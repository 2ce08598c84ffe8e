package wsdiscovery

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// port is that of WS-Discovery.
const port = 3702

// group is the multicast group of WS-Discovery in IPv4.
var group = &net.UDPAddr{IP: net.IPv4(239, 255, 255, 250), Port: port}

// Delays and bounds of the specification, section 3.1.3 and appendix I of SOAP-over-UDP.
const (
	maxDelay    = 500 * time.Millisecond // before an answer, and before a Hello
	minRepeat   = 50 * time.Millisecond  // before a message is sent a second time
	maxRepeat   = 250 * time.Millisecond
	maxPending  = 32 // answers that wait for their delay; further messages are ignored
	maxRecentID = 64 // ids of messages that are not answered again
)

// Run announces the device on an interface and answers messages until ctx is done; then
// it says Bye. It returns only if the socket fails or ctx is done.
func Run(ctx context.Context, device *net.Interface, target Target) error {
	socket, err := listen(ctx, device)
	if err != nil {
		return err
	}
	defer socket.Close()
	r := &responder{
		socket:  socket,
		target:  target,
		compose: &composer{target: target, instance: time.Now().Unix(), newID: newID},
		pending: make(chan struct{}, maxPending),
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	var tasks sync.WaitGroup
	tasks.Go(func() {
		r.send(running, group, func() []byte { return r.compose.announcement("Hello") }, random(0, maxDelay))
	})
	unblock := context.AfterFunc(ctx, func() { _ = socket.SetReadDeadline(time.Now()) })
	defer unblock()
	err = r.receive(running, &tasks)
	stop()
	tasks.Wait()
	if ctx.Err() != nil {
		r.send(context.WithoutCancel(ctx), group, func() []byte { return r.compose.announcement("Bye") }, 0)
		return ctx.Err()
	}
	return err
}

// listen returns a socket that receives the group's messages from the interface, not those
// from interfaces on which other programs of the machine have joined the group, and sends to
// the group through it. Several programs on a machine may do so.
func listen(ctx context.Context, device *net.Interface) (net.PacketConn, error) {
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var failure error
		err := raw.Control(func(fd uintptr) {
			failure = errors.Join(
				unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
				unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MULTICAST_ALL, 0),
			)
		})
		return errors.Join(err, failure)
	}}
	socket, err := config.ListenPacket(ctx, "udp4", fmt.Sprintf(":%d", port))
	if err != nil {
		return nil, fmt.Errorf("listen for WS-Discovery: %w", err)
	}
	multicast := ipv4.NewPacketConn(socket)
	err = errors.Join(
		multicast.JoinGroup(device, group),
		multicast.SetMulticastInterface(device),
		multicast.SetMulticastTTL(1),
		multicast.SetMulticastLoopback(true), // for programs on this machine
	)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("join the multicast group %v on %s: %w", group.IP, device.Name, err), socket.Close())
	}
	return socket, nil
}

// responder answers messages on a socket.
type responder struct {
	socket  net.PacketConn
	target  Target
	pending chan struct{}
	recent  []string // ids, the oldest first

	mu      sync.Mutex
	compose *composer
}

// receive starts an answer for each message, until the socket fails or ctx is done.
func (r *responder) receive(ctx context.Context, tasks *sync.WaitGroup) error {
	packet := make([]byte, maxMessage+1)
	for {
		n, from, err := r.socket.ReadFrom(packet)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("receive: %w", err)
		}
		m, err := Parse(packet[:n])
		if err != nil || !r.target.Matches(m) || slices.Contains(r.recent, m.ID) {
			continue // others on the network send what they like
		}
		select {
		case r.pending <- struct{}{}:
		default:
			continue
		}
		r.recent = append(r.recent, m.ID)
		r.recent = r.recent[max(0, len(r.recent)-maxRecentID):]
		tasks.Go(func() {
			defer func() { <-r.pending }()
			r.send(ctx, from, func() []byte { return r.compose.reply(m) }, random(0, maxDelay))
		})
	}
}

// send sends a message twice, after a delay.
func (r *responder) send(ctx context.Context, to net.Addr, compose func() []byte, delay time.Duration) {
	r.mu.Lock()
	message := compose()
	r.mu.Unlock()
	for _, wait := range []time.Duration{delay, random(minRepeat, maxRepeat)} {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		_, _ = r.socket.WriteTo(message, to) // as if the network lost it
	}
}

// random returns a duration between two bounds.
func random(from, to time.Duration) time.Duration {
	return from + mathrand.N(to-from)
}

// newID returns the id of a new message: a random UUID.
func newID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
