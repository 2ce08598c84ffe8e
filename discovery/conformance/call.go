package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"akri.sh/akri/discovery/protocol"
	"akri.sh/akri/internal/backoff"
)

// pollInterval is how often a condition is looked at.
const pollInterval = 2 * time.Millisecond

// await looks at a condition until it is done, or a time has passed, and returns its last
// error.
func await(ctx context.Context, within time.Duration, condition func() (done bool, err error)) error {
	for deadline := time.Now().Add(within); ; {
		done, err := condition()
		if done || time.Now().After(deadline) || !backoff.Sleep(ctx, pollInterval) {
			return err
		}
	}
}

// call is an open call of Discover.
type call struct {
	cancel context.CancelFunc
	ended  chan struct{} // closed when the call has ended; err is then set
	err    error

	mu     sync.Mutex
	newest []*protocol.Device
	lists  int // how many were sent
}

// open calls a handler.
func (c *checker) open(details string) *call {
	ctx, cancel := context.WithCancel(c.ctx)
	opened := &call{cancel: cancel, ended: make(chan struct{})}
	request := &protocol.DiscoverRequest{DiscoveryDetails: details, DiscoveryProperties: map[string]*protocol.ByteData{}}
	for name, value := range c.what.Properties {
		request.DiscoveryProperties[name] = &protocol.ByteData{Vec: value}
	}
	c.calls.Go(func() {
		defer cancel()
		defer close(opened.ended)
		opened.err = c.receive(ctx, opened, request)
	})
	return opened
}

func (c *checker) receive(ctx context.Context, opened *call, request *protocol.DiscoverRequest) error {
	stream, err := protocol.NewDiscoveryHandlerClient(c.connection).Discover(ctx, request)
	if err != nil {
		return err
	}
	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		c.inspect(message.GetDevices())
		opened.mu.Lock()
		opened.newest = message.GetDevices()
		opened.lists++
		opened.mu.Unlock()
	}
}

// list returns the newest list, and how many were sent.
func (c *call) list() (newest []*protocol.Device, lists int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.newest, c.lists
}

// end returns why the call ended although it was not cancelled; nil while it is open.
func (c *call) end() error {
	select {
	case <-c.ended:
	default:
		return nil
	}
	if c.err == nil {
		return errors.New("the call ended: it must go on until it is cancelled")
	}
	return fmt.Errorf("the call ended with %s: %s", status.Code(c.err), status.Convert(c.err).Message())
}

// observe returns an error if the call ends within a time.
func (c *call) observe(during time.Duration) error {
	select {
	case <-time.After(during):
	case <-c.ended:
	}
	return c.end()
}

// sends waits until a call has sent more lists than a number.
func (c *checker) sends(lists int, from *call) error {
	return await(c.ctx, c.what.Patience, func() (bool, error) {
		ended := from.end() // first, because the last list may be older than the end
		if _, sent := from.list(); sent > lists {
			return true, nil
		}
		if ended != nil {
			return true, ended
		}
		return false, fmt.Errorf("no list was sent: send one as soon as it is known, even if it is empty (waited %v)", c.what.Patience)
	})
}

// refuses returns an error unless a handler refuses details as it should.
func (c *checker) refuses(details string) error {
	invalid := c.open(details)
	defer invalid.cancel()
	err := await(c.ctx, c.what.Patience, func() (bool, error) {
		if newest, sent := invalid.list(); sent > 0 {
			return true, fmt.Errorf("not refused: a list of %d devices was sent", len(newest))
		}
		if invalid.end() != nil {
			return true, nil
		}
		return false, fmt.Errorf("not refused within %v", c.what.Patience)
	})
	if err != nil {
		return err
	}
	switch code := status.Code(invalid.err); {
	case code != codes.InvalidArgument:
		return fmt.Errorf("refused with %s, want INVALID_ARGUMENT: %s", code, status.Convert(invalid.err).Message())
	case status.Convert(invalid.err).Message() == "":
		return errors.New("refused without a text: say which field is wrong, and what to write instead")
	}
	return nil
}
