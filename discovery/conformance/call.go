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
)

// call is an open call of Discover.
type call struct {
	cancel context.CancelFunc
	lists  chan []*protocol.Device // buffered; the oldest are dropped
	ended  chan struct{}

	mu  sync.Mutex
	err error // set when ended is closed
}

// maxLists bounds the lists of a call that are not yet read.
const maxLists = 100

// open calls a handler.
func (c *checker) open(details string) *call {
	ctx, cancel := context.WithCancel(c.ctx)
	opened := &call{cancel: cancel, lists: make(chan []*protocol.Device, maxLists), ended: make(chan struct{})}
	request := &protocol.DiscoverRequest{DiscoveryDetails: details, DiscoveryProperties: map[string]*protocol.ByteData{}}
	for name, value := range c.what.Properties {
		request.DiscoveryProperties[name] = &protocol.ByteData{Vec: value}
	}
	c.calls.Go(func() {
		defer cancel()
		err := opened.receive(ctx, c.client, request)
		opened.mu.Lock()
		opened.err = err
		opened.mu.Unlock()
		close(opened.ended)
	})
	return opened
}

func (c *call) receive(ctx context.Context, client protocol.DiscoveryHandlerClient, request *protocol.DiscoverRequest) error {
	stream, err := client.Discover(ctx, request)
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
		select {
		case c.lists <- message.GetDevices():
		default: // nobody reads: only the newest list counts
			select {
			case <-c.lists:
			default:
			}
			c.lists <- message.GetDevices() // the only sender
		}
	}
}

// result returns the error with which the call ended.
func (c *call) result() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

var errNoList = errors.New("no list was sent: send one as soon as it is known, even if it is empty")

// next returns the next list.
func (c *call) next(within time.Duration) ([]*protocol.Device, error) {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case list := <-c.lists:
		return list, nil
	default:
	}
	select {
	case list := <-c.lists:
		return list, nil
	case <-c.ended:
		select { // the last list may be older than the end
		case list := <-c.lists:
			return list, nil
		default:
			return nil, c.why()
		}
	case <-timer.C:
		return nil, fmt.Errorf("%w (waited %v)", errNoList, within)
	}
}

// why returns the reason why the call ended although it was not cancelled.
func (c *call) why() error {
	err := c.result()
	if err == nil {
		return errors.New("the call ended: it must go on until it is cancelled")
	}
	return fmt.Errorf("the call ended with %s: %s", status.Code(err), status.Convert(err).Message())
}

// settle reads lists until none has come for a time, and returns the last one.
func (c *call) settle(
	list []*protocol.Device, quiet, patience time.Duration, good func([]*protocol.Device) error,
) ([]*protocol.Device, error) {
	deadline := time.Now().Add(patience)
	for {
		next, err := c.next(quiet)
		if err == nil {
			if list = next; time.Now().After(deadline) { // a handler whose devices change all the time
				return list, good(list)
			}
			continue
		}
		if !errors.Is(err, errNoList) {
			return list, err
		}
		if failure := good(list); failure == nil || time.Now().After(deadline) {
			return list, failure
		}
	}
}

// refused returns an error unless the call was refused as it should be.
func (c *call) refused(within time.Duration) error {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case list := <-c.lists:
		return fmt.Errorf("not refused: a list of %d devices was sent", len(list))
	case <-c.ended:
	case <-timer.C:
		return fmt.Errorf("not refused within %v", within)
	}
	err := c.result()
	switch code := status.Code(err); {
	case code != codes.InvalidArgument:
		return fmt.Errorf("refused with %s, want INVALID_ARGUMENT: %s", code, status.Convert(err).Message())
	case status.Convert(err).Message() == "":
		return errors.New("refused without a text: say which field is wrong, and what to write instead")
	}
	return nil
}
