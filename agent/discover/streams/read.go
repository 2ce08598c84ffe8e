package streams

import (
	"errors"
	"io"

	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"akri.sh/akri/discovery/protocol"
)

// A handler decides how often it sends. What its messages cost the agent and the API
// server does not depend on that: they are read at a bounded rate, and only the newest
// is handled, quickly at first and then at a lower rate.
const (
	handleRate  = 2 // messages per second
	handleBurst = 10

	readRate  = 8 << 20 // bytes per second
	readBurst = 2 * maxMessageBytes
	// readCost is the least that a message counts, in bytes.
	readCost = 4 << 10
)

// read puts the messages of a call into newest, whose capacity is 1, and takes out
// those that nobody has handled. It returns the reason why the call ended.
func read(call grpc.ServerStreamingClient[protocol.DiscoverResponse], newest chan *protocol.DiscoverResponse) error {
	pace := rate.NewLimiter(readRate, readBurst)
	for {
		message, err := call.Recv()
		if errors.Is(err, io.EOF) {
			return errEnded
		}
		if err != nil {
			return err
		}
		select {
		case <-newest:
		default:
		}
		newest <- message // does not block: only this function fills it
		if err := pace.WaitN(call.Context(), max(readCost, proto.Size(message))); err != nil {
			return err
		}
	}
}
