package coalesce_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/coalesce"
	"akri.sh/akri/discovery/handlertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type function func(ctx context.Context, request discovery.Request, send func([]discovery.Device) error) error

func (f function) Discover(ctx context.Context, request discovery.Request, send func([]discovery.Device) error) error {
	return f(ctx, request, send)
}

// counted counts its calls, and sends a list that it changes later.
type counted struct {
	calls, open atomic.Int32
	more        chan struct{}
}

func (c *counted) Discover(ctx context.Context, request discovery.Request, send func([]discovery.Device) error) error {
	c.calls.Add(1)
	c.open.Add(1)
	defer c.open.Add(-1)
	if request.Details == "bad" {
		return discovery.Invalid("details: bad")
	}
	list := []discovery.Device{{
		ID: "a", Properties: map[string]string{"P": "1"},
		Mounts:      []discovery.Mount{{HostPath: "/m", ContainerPath: "/m"}},
		DeviceSpecs: []discovery.DeviceSpec{{HostPath: "/d", ContainerPath: "/d", Permissions: "r"}},
	}}
	if err := send(list); err != nil {
		return err
	}
	list[0].Properties["P"] = "changed after send"
	list[0].Mounts[0].HostPath, list[0].DeviceSpecs[0].HostPath = "/changed", "/changed"
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-c.more:
	}
	if err := send([]discovery.Device{{ID: "a"}, {ID: "b"}}); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

func TestConformance(t *testing.T) {
	handler := &counted{more: make(chan struct{})}
	handlertest.Run(t, coalesce.Wrap(handler), handlertest.Case{
		Invalid: []string{"bad"}, MinDevices: 1, Quiet: 100 * time.Millisecond,
		Change: func(context.Context) error { close(handler.more); return nil },
	})
}

// TestOneDiscovery checks that 100 agents share one discovery, and that it ends with the
// last of them.
func TestOneDiscovery(t *testing.T) {
	handler := &counted{more: make(chan struct{})}
	shared := coalesce.Wrap(handler)
	request := discovery.Request{Details: "x", Properties: map[string][]byte{"P": []byte("v"), "Q": nil}}
	var agents []*handlertest.Call
	for range 100 {
		agents = append(agents, handlertest.Open(t, shared, request))
	}
	for _, agent := range agents {
		device := agent.UntilIDs("a")[0]
		if device.Properties["P"] != "1" || device.Mounts[0].HostPath != "/m" || device.DeviceSpecs[0].HostPath != "/d" {
			t.Errorf("the device is %v", device)
		}
	}
	agents[0].Stop() // it may have started the discovery
	close(handler.more)
	for _, agent := range agents[1:] {
		agent.UntilIDs("a", "b")
	}
	if calls, open := handler.calls.Load(), handler.open.Load(); calls != 1 || open != 1 {
		t.Errorf("%d calls of the handler, %d are open; want one", calls, open)
	}
	for _, agent := range agents {
		agent.Stop()
	}
	if open := handler.open.Load(); open != 0 {
		t.Errorf("%d calls are open after the last has left", open)
	}
}

// TestDifferentRequests checks that only equal requests are shared.
func TestDifferentRequests(t *testing.T) {
	handler := &counted{more: make(chan struct{})}
	shared := coalesce.Wrap(handler)
	requests := []discovery.Request{
		{}, {Details: "x"}, {Properties: map[string][]byte{"A": nil}}, {Properties: map[string][]byte{"A": {}}},
		{Properties: map[string][]byte{"A": []byte("v")}}, {Properties: map[string][]byte{"A": nil, "B": nil}},
	}
	for _, request := range requests {
		handlertest.Open(t, shared, request).Next()
	}
	if calls := int(handler.calls.Load()); calls != len(requests) {
		t.Errorf("%d calls for %d requests", calls, len(requests))
	}
}

var errBroken = errors.New("the bus is off")

// breaking is a handler that sends an empty list, and fails when it is broken.
type breaking struct {
	calls  atomic.Int32
	broken chan struct{}
}

func (b *breaking) Discover(_ context.Context, _ discovery.Request, send func([]discovery.Device) error) error {
	b.calls.Add(1)
	if err := send(nil); err != nil {
		return err
	}
	<-b.broken
	return errBroken
}

// TestFailure checks that a failed discovery ends all its calls, and that the next call starts
// another, although one of the calls has not ended.
func TestFailure(t *testing.T) {
	handler := &breaking{broken: make(chan struct{})}
	shared := coalesce.Wrap(handler)
	var slow sync.WaitGroup
	first, released := make(chan struct{}), make(chan struct{})
	slow.Go(func() {
		err := shared.Discover(t.Context(), discovery.Request{}, func([]discovery.Device) error { close(first); <-released; return nil })
		if !errors.Is(err, errBroken) {
			t.Errorf("the slow one ended with %v", err)
		}
	})
	<-first
	var agents []*handlertest.Call
	for range 3 {
		agents = append(agents, handlertest.Open(t, shared, discovery.Request{}))
		agents[len(agents)-1].Next()
	}
	close(handler.broken)
	for _, agent := range agents {
		if err := agent.Err(); !errors.Is(err, errBroken) {
			t.Errorf("ended with %v", err)
		}
	}
	if err := handlertest.Open(t, shared, discovery.Request{}).Err(); !errors.Is(err, errBroken) {
		t.Error(err)
	}
	if got := handler.calls.Load(); got != 2 {
		t.Errorf("%d calls of the handler, want two", got)
	}
	close(released)
	slow.Wait()
}

// TestCallWhileTheLastOneEnds checks that a call does not join a discovery that was cancelled,
// but has not ended yet.
func TestCallWhileTheLastOneEnds(t *testing.T) {
	var calls atomic.Int32
	ending, released := make(chan struct{}), make(chan struct{})
	shared := coalesce.Wrap(function(func(ctx context.Context, _ discovery.Request, send func([]discovery.Device) error) error {
		isFirst := calls.Add(1) == 1
		if err := send(nil); err != nil {
			return err
		}
		<-ctx.Done()
		if isFirst {
			close(ending)
			<-released
		}
		return ctx.Err()
	}))
	first := handlertest.Open(t, shared, discovery.Request{})
	first.Next()
	var ended sync.WaitGroup
	ended.Go(first.Stop)
	<-ending
	handlertest.Open(t, shared, discovery.Request{}).Next()
	if got := calls.Load(); got != 2 {
		t.Errorf("%d calls of the handler, want two", got)
	}
	close(released)
	ended.Wait()
}
