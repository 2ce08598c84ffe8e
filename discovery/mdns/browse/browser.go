package browse

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"akri.sh/akri/discovery/monitor"
)

// Reasons for [Options.Failed].
const (
	// FailedMalformed: a packet is not a message, or has a record that cannot be read.
	FailedMalformed = "malformed_packet"
	// FailedForeign: a response comes from another port than 5353, or from an address
	// outside the networks of the interface.
	FailedForeign = "foreign_packet"
	// FailedRate: more packets arrive than are read.
	FailedRate = "rate_limited"
	// FailedFull: there are more services or records, or larger ones, than are kept.
	FailedFull = "cache_full"
	// FailedSend: a question cannot be sent.
	FailedSend = "send"
	// FailedInterface: an interface cannot be used.
	FailedInterface = "interface"
)

// Options configure a [Browser]. The zero value is useful.
type Options struct {
	// Logger is slog.Default() if it is nil.
	Logger *slog.Logger
	// Failed is called for each failure, with one of the constants Failed… as its reason,
	// but only once for each device or name. It must be safe for concurrent use. It may be nil.
	Failed func(reason string)
}

// Browser browses for services. All its queries share sockets, questions and a cache. It
// uses the network only while there is a query. It is safe for concurrent use.
type Browser struct {
	options        Options
	report         *monitor.Reporter
	rescanInterval time.Duration

	mu         sync.Mutex // for all that follows
	machine    *machine
	interfaces map[int]Interface
	sockets    map[socketID]*socket // nil for those that could not be opened, which the log says
	rescan     time.Time            // when to list the interfaces again
	wake       time.Time            // when the timer calls tick
	timer      *time.Timer
}

// New returns a Browser.
func New(options Options) *Browser {
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	if options.Failed == nil {
		options.Failed = func(string) {}
	}
	random := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())) //nolint:gosec // only delays depend on it
	b := &Browser{options: options, rescanInterval: rescanInterval, sockets: map[socketID]*socket{}}
	b.report = monitor.NewReporter(options.Failed, options.Logger, "Left out a part of what mDNS announces")
	b.machine = newMachine(random, b.complain)
	return b
}

// Browse calls changed with the full list of services, sorted by [Service.Key], until ctx
// is done or changed returns an error, which Browse returns. The first list comes when the
// network had time to answer, after about four seconds or, if another query has the same
// types, at once. If lists change faster than changed returns, it misses some, but never
// the newest. It must not modify them.
//
// An error that is neither of changed nor of ctx means that the query is wrong, or that
// the node's interfaces cannot be listed.
func (b *Browser) Browse(ctx context.Context, query Query, changed func([]Service) error) error {
	s, err := newSubscription(query)
	if err != nil {
		return err
	}
	if err := b.subscribe(s); err != nil {
		return err
	}
	defer b.unsubscribe(s)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case services := <-s.updates:
			if err := changed(services); err != nil {
				return err
			}
		}
	}
}

func (b *Browser) subscribe(s *subscription) error {
	interfaces, err := listInterfaces()
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if len(b.machine.subscriptions) == 0 {
		b.rescan, b.timer = now.Add(b.rescanInterval), time.AfterFunc(0, b.tick)
	}
	b.machine.subscriptions[s] = true // so that its interfaces are used
	b.useInterfaces(now, interfaces)
	b.machine.subscribe(now, s)
	b.advance(now)
	return nil
}

func (b *Browser) unsubscribe(s *subscription) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.machine.unsubscribe(s)
	b.useInterfaces(now, b.interfaces)
	if len(b.machine.subscriptions) > 0 {
		b.advance(now)
		return
	}
	b.timer.Stop()
	clear(b.machine.links)
}

// tick is called by the timer.
func (b *Browser) tick() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.machine.subscriptions) == 0 {
		return
	}
	now := time.Now()
	if !now.Before(b.rescan) {
		b.scan(now)
	}
	b.advance(now)
}
