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

	stop context.CancelFunc
	wake chan struct{} // the endpoint has registered: retry now

	// inUse is the stream as the registry counts it, if counted. Only the listener uses
	// both.
	inUse   registry.Stream
	counted bool
}

// streamListener receives the events of a stream, one at a time.
type streamListener interface {
	// opened is called when the handler has answered, or has kept the call open.
	opened(*stream)
	// received is called with the newest message. An error ends the stream.
	received(*stream, *protocol.DiscoverResponse) error
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
		s.once(ctx, to)
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
			failures = 0
		case <-timer.C:
			failures++
		}
	}
}

// once runs one stream until it ends.
func (s *stream) once(ctx context.Context, to streamListener) {
	connection, err := s.connect(ctx, s.entry.Endpoint)
	if err != nil {
		if ctx.Err() == nil {
			to.broke(s, false, &connectError{err})
		}
		return
	}
	defer connection.Close()
	open := false
	err = s.listen(ctx, connection, func(message *protocol.DiscoverResponse) error {
		if !open {
			open = true
			to.opened(s)
		}
		if message != nil {
			return to.received(s, message)
		}
		return nil
	})
	if ctx.Err() == nil {
		to.broke(s, open, err)
	}
}

// listen calls heard with the messages of one call, and with nil when the call has
// lasted for steadyAfter, until the call ends or heard returns an error.
func (s *stream) listen(ctx context.Context, connection *grpc.ClientConn, heard func(*protocol.DiscoverResponse) error) error {
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
	pace := rate.NewLimiter(handleRate, handleBurst)
	for {
		select {
		case message := <-newest:
			if err := heard(message); err != nil {
				return err
			}
			_ = pace.Wait(ctx) // it fails if ctx is done, which ends the call
		case <-steady.C:
			if err := heard(nil); err != nil {
				return err
			}
		case err := <-ended:
			select {
			case message := <-newest:
				if err := heard(message); err != nil {
					return err
				}
			default:
			}
			return err
		}
	}
}

// retryNow ends the wait before the next attempt.
func (s *stream) retryNow() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
