package browse

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"akri.sh/akri/internal/deadline"
)

// loop drives a machine: it owns the clock, the sockets and all goroutines.
type loop struct {
	options        Options
	rescanInterval time.Duration
	cancel         context.CancelFunc
	ctx            context.Context
	commands       chan func()
	ended          chan struct{}

	// The rest belongs to run.
	machine    *machine
	interfaces map[int]*listed
	rescan     time.Time            // when to list the interfaces again
	sockets    map[socketID]*socket // nil for those that could not be opened, which the log says
	readers    sync.WaitGroup
	received   chan received
	crowded    bool // the log says that there are too many interfaces
}

func startLoop(options Options, rescanInterval time.Duration) *loop {
	ctx, cancel := context.WithCancel(context.Background())
	random := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())) //nolint:gosec // only delays depend on it
	l := &loop{
		options: options, rescanInterval: rescanInterval, ctx: ctx, cancel: cancel, commands: make(chan func()), ended: make(chan struct{}),
		machine: newMachine(random, options.Failed), rescan: time.Now().Add(rescanInterval),
		sockets: map[socketID]*socket{}, received: make(chan received, 64),
	}
	go func() {
		defer close(l.ended)
		l.run()
		for id := range l.sockets {
			l.leave(id)
		}
		l.readers.Wait()
	}()
	return l
}

// do runs a function in the loop's goroutine.
func (l *loop) do(command func()) {
	done := make(chan struct{})
	l.commands <- func() { command(); close(done) }
	<-done
}

// run handles events one by one.
func (l *loop) run() {
	wake := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(time.Until(deadline.Earliest(wake, l.rescan)))
		select {
		case <-l.ctx.Done():
			return
		case command := <-l.commands:
			command()
			wake = time.Now()
		case r := <-l.received:
			switch i := l.interfaces[r.index]; {
			case i == nil: // it has just disappeared
			case !i.onLink(r.from):
				l.options.Failed(FailedForeign)
			default:
				now := time.Now()
				l.machine.receive(now, r.index, r.records)
				wake = deadline.Earliest(wake, now.Add(batchTime))
			}
		case <-timer.C:
		}
		now := time.Now()
		if !now.Before(l.rescan) {
			l.scan(now)
			wake = now
		}
		if !wake.IsZero() && !now.Before(wake) {
			wake = l.advance(now)
		}
	}
}

// advance sends what the machine asks, publishes what it has found, and returns when to
// call it next; zero means never.
func (l *loop) advance(now time.Time) time.Time {
	packets, next := l.machine.advance(now)
	for _, p := range packets {
		sent := false
		for _, isIPv6 := range []bool{false, true} {
			if s := l.sockets[socketID{p.index, isIPv6}]; s != nil {
				sent = s.send(p.packet) == nil || sent
			}
		}
		if !sent {
			l.options.Failed(FailedSend)
			l.rescan = deadline.Earliest(l.rescan, now.Add(rescanSoon))
		}
	}
	for s := range l.machine.subscriptions {
		services, changed := l.machine.update(now, s)
		if !changed {
			continue
		}
		select { // the newest list replaces one that was not read
		case <-s.updates:
		default:
		}
		s.updates <- services
	}
	if !next.IsZero() {
		next = deadline.Latest(next, now.Add(sendInterval))
	}
	return next
}

func (l *loop) subscribe(s *subscription, interfaces map[int]*listed) {
	l.interfaces = interfaces
	l.machine.subscriptions[s] = true // so that its interfaces are used
	l.useInterfaces()
	l.machine.subscribe(time.Now(), s)
}

func (l *loop) unsubscribe(s *subscription) {
	l.machine.unsubscribe(s)
	l.useInterfaces()
}

// scan lists the interfaces.
func (l *loop) scan(now time.Time) {
	l.rescan = now.Add(l.rescanInterval)
	interfaces, err := listInterfaces()
	if err != nil { // they remain as they were
		l.options.Failed(FailedInterface)
		l.options.Logger.Warn("Cannot list the network interfaces for mDNS", "err", err)
		return
	}
	l.interfaces = interfaces
	l.useInterfaces()
	for _, link := range l.machine.links {
		if !link.gone.IsZero() {
			l.rescan = now.Add(rescanSoon)
		}
	}
}

// useInterfaces opens sockets on the interfaces that subscriptions use, and closes the
// others.
func (l *loop) useInterfaces() {
	var used []Interface
	wanted := map[socketID]bool{}
	for _, index := range slices.Sorted(maps.Keys(l.interfaces)) {
		i := l.interfaces[index]
		if !l.isUsed(i.Interface) {
			continue
		}
		if len(used) == maxInterfaces {
			l.options.Failed(FailedInterface)
			if !l.crowded {
				l.crowded = true
				l.options.Logger.Warn("There are too many network interfaces for mDNS: choose some", "used", maxInterfaces)
			}
			break
		}
		used = append(used, i.Interface)
		for id, usable := range map[socketID]bool{{index, false}: i.IPv4, {index, true}: i.IPv6} {
			if usable {
				wanted[id] = true
				l.join(id, i.Name)
			}
		}
	}
	for id := range l.sockets {
		if !wanted[id] {
			l.leave(id)
		}
	}
	l.machine.setInterfaces(time.Now(), used)
}

func (l *loop) isUsed(i Interface) bool {
	for s := range l.machine.subscriptions {
		if s.query.uses(i) {
			return true
		}
	}
	return false
}

// join opens the socket, unless it is open.
func (l *loop) join(id socketID, name string) {
	s, tried := l.sockets[id]
	if s != nil {
		return
	}
	s, err := openSocket(id)
	l.sockets[id] = s
	if err != nil {
		l.options.Failed(FailedInterface)
		if !tried {
			l.options.Logger.Warn("Cannot use a network interface for mDNS", "interface", name, "ipv6", id.isIPv6, "err", err)
		}
		return
	}
	l.readers.Go(func() { s.read(l.ctx, id.index, l.received, l.options.Failed) })
}

// leave closes the socket, which ends its reader.
func (l *loop) leave(id socketID) {
	if s := l.sockets[id]; s != nil {
		s.conn.Close()
	}
	delete(l.sockets, id)
}
