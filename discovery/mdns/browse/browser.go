package browse

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Reasons for [Options.Failed].
const (
	// FailedMalformed: a packet is not a message, or breaks off.
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
	// Failed is called for each failure, with one of the constants Failed… as its reason.
	// It must be safe for concurrent use. It may be nil.
	Failed func(reason string)
}

// Browser browses for services. All its queries share sockets, questions and a cache. It
// uses the network only while there is a query. It is safe for concurrent use.
type Browser struct {
	options        Options
	rescanInterval time.Duration

	mu      sync.Mutex
	running *loop // while it has users
	users   int
}

// New returns a Browser.
func New(options Options) *Browser {
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	if options.Failed == nil {
		options.Failed = func(string) {}
	}
	return &Browser{options: options, rescanInterval: rescanInterval}
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
	interfaces, err := listInterfaces()
	if err != nil {
		return err
	}
	l := b.acquire()
	defer b.release(l)
	l.do(func() { l.subscribe(s, interfaces) })
	defer l.do(func() { l.unsubscribe(s) })
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

// acquire returns the loop, which it starts for the first user.
func (b *Browser) acquire() *loop {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running == nil {
		b.running = startLoop(b.options, b.rescanInterval)
	}
	b.users++
	return b.running
}

// release stops a loop after its last user has left.
func (b *Browser) release(l *loop) {
	b.mu.Lock()
	b.users--
	last := b.users == 0
	if last {
		b.running = nil
	}
	b.mu.Unlock()
	if last {
		l.cancel()
		<-l.ended
	}
}
