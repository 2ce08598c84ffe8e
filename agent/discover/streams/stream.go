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
)

const (
	firstRetry   = 100 * time.Millisecond
	longestRetry = 15 * time.Second
	maxMessage   = 16 << 20 // bytes, of a list of devices
)

// stream asks one endpoint one question, again and again, until it is stopped.
type stream struct {
	entry   registry.Entry
	request *protocol.DiscoverRequest

	stop context.CancelFunc
	wake chan struct{} // the endpoint has registered: try now
}

// listener is told what happens; the calls come one after the other.
type listener interface {
	opened(*stream)
	spoke(*stream, *protocol.DiscoverResponse)
	// broke: err is never nil.
	broke(s *stream, wasOpen bool, err error)
	closed(*stream) // after opened, when we end it
}

func (s *stream) run(ctx context.Context, to listener) {
	retry := firstRetry
	for {
		if spoke := s.once(ctx, to); spoke {
			retry = firstRetry
		}
		if ctx.Err() != nil {
			return
		}
		timer := time.NewTimer(retry - rand.N(retry/4))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-s.wake:
			timer.Stop()
			retry = firstRetry
		case <-timer.C:
			retry = min(2*retry, longestRetry)
		}
	}
}

// once holds one stream until it ends, and tells whether it has spoken.
func (s *stream) once(ctx context.Context, to listener) (spoke bool) {
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
		spoke = true
		to.spoke(s, message)
	})
	if ctx.Err() != nil {
		to.closed(s)
	} else {
		to.broke(s, true, err)
	}
	return spoke
}

func (s *stream) listen(ctx context.Context, connection *grpc.ClientConn, spoke func(*protocol.DiscoverResponse)) error {
	call, err := protocol.NewDiscoveryHandlerClient(connection).Discover(ctx, s.request, grpc.MaxCallRecvMsgSize(maxMessage))
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
		spoke(message)
	}
}

// poke ends a wait before the next attempt.
func (s *stream) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// refused tells an endpoint that rejects the question from one that fails.
func refused(err error) bool { return status.Code(err) == codes.InvalidArgument }

// reason is what to tell of an error: the handler's words without gRPC's.
func reason(err error) string {
	if s, ok := status.FromError(err); ok && s.Message() != "" {
		return s.Message()
	}
	return err.Error()
}
