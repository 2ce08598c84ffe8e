package browse

import (
	"errors"
	"net/netip"
	"time"

	"akri.sh/akri/discovery/mdns/browse/wire"
	"akri.sh/akri/internal/deadline"
)

// advance sends what the machine asks, and sets the timer. All methods in this file need the
// lock, except receive.
func (b *Browser) advance(now time.Time) {
	packets, next := b.machine.advance(now)
	for _, p := range packets {
		sent := false
		for _, isIPv6 := range []bool{false, true} {
			if s := b.sockets[socketID{p.index, isIPv6}]; s != nil {
				sent = s.send(p.packet) == nil || sent
			}
		}
		if !sent {
			b.options.Failed(FailedSend)
			b.rescan = deadline.Earliest(b.rescan, now.Add(rescanSoon))
		}
	}
	b.sleep(now, deadline.Latest(deadline.Earliest(next, b.rescan), now.Add(batchTime)))
}

// sleep sets the timer.
func (b *Browser) sleep(now, until time.Time) {
	b.wake = until
	b.timer.Reset(until.Sub(now))
}

// receive passes a response on. The changes of the next ones are handled together with it.
func (b *Browser) receive(index int, from netip.AddrPort, records []wire.Record, unread error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i, used := b.interfaces[index]
	switch now := time.Now(); {
	case !used: // it has just disappeared
	case from.Port() != port:
		b.complain(FailedForeign, from.Addr().String(), "a response has another source port than 5353")
	case !i.onLink(from.Addr()):
		b.complain(FailedForeign, from.Addr().String(), "a response comes from outside the networks of "+i.Name)
	default:
		if unread != nil {
			b.complain(FailedMalformed, from.Addr().String(), unread.Error())
		}
		b.machine.receive(now, i.Name, records)
		if soon := now.Add(batchTime); soon.Before(b.wake) {
			b.sleep(now, soon)
		}
	}
}

// complain counts a failure of a device or of a name, and logs it, but not again for each of its
// packets.
func (b *Browser) complain(reason, of, cause string) { b.report.Once(reason, of, errors.New(cause)) }

// scan lists the interfaces.
func (b *Browser) scan(now time.Time) {
	b.rescan = now.Add(b.rescanInterval)
	interfaces, err := listInterfaces()
	if err != nil { // they remain as they were
		b.options.Failed(FailedInterface)
		b.options.Logger.Warn("Cannot list the network interfaces for mDNS", "err", err)
		return
	}
	b.useInterfaces(now, interfaces)
}

// useInterfaces opens sockets on the interfaces that subscriptions use, and closes the
// others.
func (b *Browser) useInterfaces(now time.Time, interfaces map[int]Interface) {
	b.interfaces = interfaces
	var used []Interface
	wanted := map[socketID]bool{}
	for index, i := range interfaces {
		if !b.machine.uses(i) {
			continue
		}
		used = append(used, i)
		for _, isIPv6 := range []bool{false, true} {
			if i.speaks(isIPv6) {
				wanted[socketID{index, isIPv6}] = true
				b.join(socketID{index, isIPv6}, i.Name)
			}
		}
	}
	for id, s := range b.sockets {
		if wanted[id] {
			continue
		}
		if s != nil {
			s.conn.Close() // which ends its reader
		}
		delete(b.sockets, id)
	}
	b.machine.setInterfaces(now, used)
}

// join opens the socket, unless it is open.
func (b *Browser) join(id socketID, name string) {
	s, tried := b.sockets[id]
	if s != nil {
		return
	}
	s, err := openSocket(id)
	b.sockets[id] = s
	if err != nil {
		b.options.Failed(FailedInterface)
		if !tried {
			b.options.Logger.Warn("Cannot use a network interface for mDNS", "interface", name, "ipv6", id.isIPv6, "err", err)
		}
		return
	}
	go s.read(b.options.Failed, func(from netip.AddrPort, records []wire.Record, unread error) {
		b.receive(id.index, from, records, unread)
	})
}
