package streams

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"akri.sh/akri/agent/discover/registry"
	"akri.sh/akri/discovery/protocol"
	"akri.sh/akri/internal/backoff"
)

const (
	minRetryDelay   = 100 * time.Millisecond
	maxRetryDelay   = 15 * time.Second
	maxMessageBytes = 16 << 20
)

// stream sends one request to one endpoint, and sends it again whenever the stream
// ends, until it is stopped.
type stream struct {
	entry   registry.Entry
	request *protocol.DiscoverRequest

	stop context.CancelFunc
	wake chan struct{} // the endpoint has registered: retry now
}

// listener receives the events of a stream, one at a time.
type listener interface {
	// opened is called when the connection is established.
	opened(*stream)
	// received is called for each message.
	received(*stream, *protocol.DiscoverResponse)
	// broke is called with the reason when the stream ends, or cannot be opened.
	broke(s *stream, wasOpen bool, err error)
	// closed is called instead of broke when the agent closed the stream.
	closed(*stream)
}

// run sends the request repeatedly until ctx is done.
func (s *stream) run(ctx context.Context, to listener) {
	failures := 0
	for {
		if received := s.once(ctx, to); received {
			failures = 0
		}
		if ctx.Err() != nil {
			return
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

// once runs one stream until it ends, and reports whether it received a message.
func (s *stream) once(ctx context.Context, to listener) (received bool) {
	connection, err := s.entry.Connect(ctx)
	if err != nil {
		if ctx.Err() == nil {
			to.broke(s, false, err)
		}
		return false
	}
	defer connection.Close()
	to.opened(s)
	err = s.listen(ctx, connection, func(message *protocol.DiscoverResponse) {
		received = true
		to.received(s, message)
	})
	if ctx.Err() != nil {
		to.closed(s)
	} else {
		to.broke(s, true, err)
	}
	return received
}

func (s *stream) listen(ctx context.Context, connection *grpc.ClientConn, received func(*protocol.DiscoverResponse)) error {
	call, err := protocol.NewDiscoveryHandlerClient(connection).Discover(ctx, s.request, grpc.MaxCallRecvMsgSize(maxMessageBytes))
	if err != nil {
		return err
	}
	for {
		message, err := call.Recv()
		if errors.Is(err, io.EOF) {
			return errors.New("the handler ended the stream")
		}
		if err != nil {
			return err
		}
		received(message)
	}
}

// retryNow ends the wait before the next attempt.
func (s *stream) retryNow() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// refused reports whether the endpoint rejects the request, as opposed to failing.
func refused(err error) bool { return status.Code(err) == codes.InvalidArgument }

// reason returns the text of an error without gRPC's prefix.
func reason(err error) string {
	if s, ok := status.FromError(err); ok && s.Message() != "" {
		return s.Message()
	}
	return err.Error()
}
