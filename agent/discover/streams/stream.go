package streams

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc"

	"akri.sh/akri/agent/discover/registry"
	"akri.sh/akri/discovery/protocol"
	"akri.sh/akri/internal/backoff"
)

const (
	minRetryDelay = 100 * time.Millisecond
	maxRetryDelay = 15 * time.Second
	// minWakeInterval is the least time between two registrations that end the wait
	// before the next attempt.
	minWakeInterval = time.Minute

	// maxMessageBytes bounds what one message can make the agent allocate.
	maxMessageBytes = 4 << 20

	// steadyAfter is how long a call must last without an answer before its handler
	// counts as available: some handlers never send an empty first list, others accept
	// connections and fail every call.
	steadyAfter = 10 * time.Second
)

// stream sends one request to one endpoint, and sends it again whenever the stream
// ends, until it is stopped.
type stream struct {
	entry   registry.Entry
	request *protocol.DiscoverRequest
	connect func(context.Context, registry.Endpoint) (*grpc.ClientConn, error)

	stop  context.CancelFunc
	wake  chan struct{} // the endpoint has registered: retry now
	wakes *rate.Limiter
	// pace is that of the messages of all calls: a call that ends does not renew it.
	pace *rate.Limiter

	// ended ends what the registry counts as the stream; nil if it counts none. Only the
	// listener uses it.
	ended func(broke bool)
}

func newStream(
	entry registry.Entry, request *protocol.DiscoverRequest,
	connect func(context.Context, registry.Endpoint) (*grpc.ClientConn, error), stop context.CancelFunc,
) *stream {
	return &stream{
		entry: entry, request: request, connect: connect, stop: stop,
		wake: make(chan struct{}, 1), wakes: rate.NewLimiter(rate.Every(minWakeInterval), 1),
		pace: rate.NewLimiter(handleRate, handleBurst),
	}
}

// streamListener receives the events of a stream, one at a time.
type streamListener interface {
	// opened is called when the handler has answered, or has kept the call open.
	opened(*stream)
	// received is called with the newest message.
	received(*stream, *protocol.DiscoverResponse)
	// broke is called with the reason when the stream ends, or cannot be opened.
	broke(s *stream, wasOpen bool, err error)
	// closed is called once, when the agent has stopped the stream. Nothing follows.
	closed(*stream)
}

// run sends the request repeatedly until ctx is done.
func (s *stream) run(ctx context.Context, to streamListener) {
	defer to.closed(s)
	failures := 0
	for {
		started := time.Now()
		reached := s.once(ctx, to)
		if ctx.Err() != nil {
			return
		}
		if time.Since(started) >= maxRetryDelay { // not a handler that ends each stream at once
			failures = 0
		}
		delay := backoff.Delay(minRetryDelay, maxRetryDelay, failures)
		timer := time.NewTimer(delay - rand.N(delay/4))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-s.wake:
			timer.Stop()
			if !reached { // the handler was gone. One that ends each stream, and registers, is still called rarely
				failures = 0
			}
		case <-timer.C:
			failures++
		}
	}
}

// once runs one stream until it ends. It reports whether the endpoint accepted the
// connection.
func (s *stream) once(ctx context.Context, to streamListener) (reached bool) {
	connection, err := s.connect(ctx, s.entry.Endpoint)
	if err != nil {
		if ctx.Err() == nil {
			to.broke(s, false, &connectError{err})
		}
		return false
	}
	defer connection.Close()
	open := false
	err = s.listen(ctx, connection, func(message *protocol.DiscoverResponse) {
		if !open {
			open = true
			to.opened(s)
		}
		if message != nil {
			to.received(s, message)
			_ = s.pace.Wait(ctx) // it fails if ctx is done, which ends the call
		}
	})
	if ctx.Err() == nil {
		to.broke(s, open, err)
	}
	return true
}

// listen calls heard with the messages of one call, and with nil when the call has
// lasted for steadyAfter, until the call ends.
func (s *stream) listen(ctx context.Context, connection *grpc.ClientConn, heard func(*protocol.DiscoverResponse)) error {
	ctx, end := context.WithCancel(ctx)
	var reading sync.WaitGroup
	defer func() {
		end()
		reading.Wait()
	}()
	call, err := protocol.NewDiscoveryHandlerClient(connection).Discover(ctx, s.request, grpc.MaxCallRecvMsgSize(maxMessageBytes))
	if err != nil {
		return err
	}
	newest, ended := make(chan *protocol.DiscoverResponse, 1), make(chan error, 1)
	reading.Go(func() { ended <- read(call, newest) })
	steady := time.NewTimer(steadyAfter)
	defer steady.Stop()
	for {
		select {
		case message := <-newest:
			heard(message)
		case <-steady.C:
			heard(nil)
		case err := <-ended:
			select {
			case message := <-newest:
				heard(message)
			default:
			}
			return err
		}
	}
}

// retryNow ends the wait before the next attempt, unless it did so less than
// minWakeInterval ago.
func (s *stream) retryNow() {
	if !s.wakes.Allow() {
		return
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
