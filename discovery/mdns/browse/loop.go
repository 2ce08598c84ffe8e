package browse

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"akri.sh/akri/internal/deadline"
)

const (
	// rescanDelay collects changes of interfaces, which come in groups.
	rescanDelay = 500 * time.Millisecond
	// rescanInterval is how often interfaces are listed without a change, as the kernel
	// drops notifications if there are too many.
	rescanInterval = time.Minute
	// rescanRetry is the time until interfaces are listed again after a failure.
	rescanRetry = 5 * time.Second
)

// loop drives a machine: it owns the clock, the sockets and all goroutines.
type loop struct {
	options  Options
	cancel   context.CancelFunc
	commands chan func()
	ended    chan struct{}
	err      error // valid after ended
	users    int   // guarded by Browser.mu

	// The rest belongs to run.
	machine    *machine
	interfaces map[int]*listed
	sockets    map[socketID]*socket
	limiters   map[int]*rate.Limiter // by index of the interface
	received   chan received
	changes    chan struct{}
	// broken has the interfaces that cannot be used, to log that only once; the zero
	// value stands for all.
	broken map[socketID]bool
	ctx    context.Context
}

type socketID struct {
	index  int
	isIPv6 bool
}

func startLoop(options Options) *loop {
	ctx, cancel := context.WithCancel(context.Background())
	random := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())) //nolint:gosec // only delays depend on it
	l := &loop{
		options: options, cancel: cancel, ctx: ctx, commands: make(chan func()), ended: make(chan struct{}),
		machine: newMachine(random, options.Failed), sockets: map[socketID]*socket{}, limiters: map[int]*rate.Limiter{},
		received: make(chan received, 64), changes: make(chan struct{}, 1), broken: map[socketID]bool{},
	}
	go func() {
		defer close(l.ended)
		l.err = l.run()
		cancel()
	}()
	return l
}

func (l *loop) hasEnded() bool {
	if l == nil {
		return true
	}
	select {
	case <-l.ended:
		return true
	default:
		return false
	}
}

// do runs a function in the loop's goroutine.
func (l *loop) do(ctx context.Context, command func()) error {
	done := make(chan struct{})
	select {
	case l.commands <- func() { command(); close(done) }:
		<-done
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-l.ended:
		return l.err
	}
}

func (l *loop) run() error {
	notifications, err := openNotifications()
	if err != nil {
		return err
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		l.watch(notifications)
	}()
	defer func() {
		notifications.Close()
		<-watched
		for _, s := range l.sockets {
			s.close()
		}
	}()
	if err := l.scan(); err != nil {
		return err
	}
	return l.handle()
}

// watch signals changes of interfaces until the socket is closed.
func (l *loop) watch(notifications *os.File) {
	buffer := make([]byte, 1<<16)
	for {
		_, err := notifications.Read(buffer)
		if err != nil && l.ctx.Err() != nil {
			return
		}
		// An error means that notifications were lost: list the interfaces.
		select {
		case l.changes <- struct{}{}:
		default:
		}
		if err != nil && !isOverflow(err) {
			return // rescanInterval remains
		}
	}
}

// handle handles events one by one.
func (l *loop) handle() error {
	wake, rescan := time.Now(), time.Now().Add(rescanInterval)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(time.Until(deadline.Earliest(wake, rescan)))
		select {
		case <-l.ctx.Done():
			return errStopped
		case command := <-l.commands:
			command()
			wake = time.Now()
		case response := <-l.received:
			now := time.Now()
			l.machine.receive(now, response.index, response.message)
			wake = deadline.Earliest(wake, now.Add(batchTime))
		case <-l.changes:
			rescan = deadline.Earliest(rescan, time.Now().Add(rescanDelay))
		case <-timer.C:
		}
		now := time.Now()
		if !now.Before(rescan) {
			rescan = now.Add(rescanInterval)
			if err := l.scan(); err != nil { // the interfaces remain as they were
				l.report(socketID{}, err, "")
				rescan = now.Add(rescanRetry)
			}
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

func (l *loop) subscribe(s *subscription) {
	l.machine.subscriptions[s] = true // so that its interfaces are used
	l.useInterfaces()
	l.machine.subscribe(time.Now(), s)
}

func (l *loop) unsubscribe(s *subscription) {
	l.machine.unsubscribe(s)
	l.useInterfaces()
}

// scan lists the interfaces.
func (l *loop) scan() error {
	interfaces, err := listInterfaces()
	if err != nil {
		return err
	}
	l.interfaces = interfaces
	l.useInterfaces()
	return nil
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
			l.report(socketID{}, fmt.Errorf("more than %d interfaces: choose some", maxInterfaces), "")
			break
		}
		used = append(used, i.Interface)
		for id, usable := range map[socketID]bool{{index, false}: i.IPv4, {index, true}: i.IPv6} {
			if usable {
				wanted[id] = true
				l.join(id, i)
			}
		}
	}
	for id, s := range l.sockets {
		if !wanted[id] {
			l.leave(id, s)
		}
	}
	for id := range l.broken {
		if !wanted[id] && id != (socketID{}) {
			delete(l.broken, id)
		}
	}
	for index := range l.limiters {
		if l.interfaces[index] == nil {
			delete(l.limiters, index)
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
func (l *loop) join(id socketID, i *listed) {
	s := l.sockets[id]
	if s == nil {
		limiter := l.limiters[id.index]
		if limiter == nil {
			limiter = rate.NewLimiter(maxPacketsPerSecond, maxPacketBurst)
			l.limiters[id.index] = limiter
		}
		var err error
		if s, err = openSocket(l.ctx, i.Interface, id.isIPv6, limiter, l.received, l.options.Failed); err != nil {
			l.report(id, err, i.Name)
			return
		}
		l.sockets[id] = s
		delete(l.broken, id)
	}
	s.setPrefixes(i.prefixes)
}

// leave closes a socket. Its reader may be about to pass on a response.
func (l *loop) leave(id socketID, s *socket) {
	delete(l.sockets, id)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		s.close()
	}()
	for {
		select {
		case <-l.received: // from any interface: lost packets do no harm
		case <-closed:
			return
		}
	}
}

// report logs that an interface cannot be used, once.
func (l *loop) report(id socketID, err error, name string) {
	l.options.Failed(FailedInterface)
	if !l.broken[id] {
		l.broken[id] = true
		l.options.Logger.Warn("Cannot use a network interface for mDNS", "interface", name, "ipv6", id.isIPv6, "err", err)
	}
}
