package streams

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// errEnded is the reason why a stream broke if the handler ended it without an error.
var errEnded = errors.New("the handler ended the stream: look at its log")

// connectError is the reason why a stream could not be opened.
type connectError struct{ cause error }

func (e *connectError) Error() string { return e.cause.Error() }
func (e *connectError) Unwrap() error { return e.cause }

// isRefusal reports whether the endpoint rejects the request, as opposed to a failure.
func isRefusal(err error) bool { return status.Code(err) == codes.InvalidArgument }

// tooLarge reports whether a message exceeds maxMessageBytes. The library has no error
// value for that (google.golang.org/grpc, rpc_util.go).
func tooLarge(err error) bool {
	return status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "received message larger than max")
}

// reason returns the text of an error without gRPC's prefix.
func reason(err error) string {
	if tooLarge(err) {
		return fmt.Sprintf("the handler's list is larger than %d MiB: restrict discoveryDetails, or let the handler report less",
			maxMessageBytes>>20)
	}
	if s, ok := status.FromError(err); ok && s.Message() != "" {
		return s.Message()
	}
	return err.Error()
}

// class returns the kind of an error, for metrics.
func class(err error) string {
	failedToConnect := (*connectError)(nil)
	switch {
	case errors.As(err, &failedToConnect):
		return "connect"
	case isRefusal(err):
		return "refused"
	case tooLarge(err):
		return "too_large"
	case errors.Is(err, errEnded):
		return "ended"
	}
	return "failed"
}
