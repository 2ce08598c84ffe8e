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

const limit = 10 * time.Second

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
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	firstCtx, leave := context.WithCancel(ctx)
	var agents sync.WaitGroup
	var first, second sync.WaitGroup
	first.Add(100)
	second.Add(99)
	for i := range 100 {
		own := ctx
		if i == 0 {
			own = firstCtx // it may have started the discovery
		}
		agents.Go(func() {
			err := shared.Discover(own, request, func(list []discovery.Device) error {
				switch len(list) {
				case 1:
					if list[0].Properties["P"] != "1" || list[0].Mounts[0].HostPath != "/m" || list[0].DeviceSpecs[0].HostPath != "/d" {
						t.Errorf("the list is %v", list)
					}
					first.Done()
				case 2:
					if own != firstCtx {
						second.Done()
					}
				}
				return nil
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("ended with %v", err)
			}
		})
	}
	await(t, &first)
	leave()
	close(handler.more)
	await(t, &second)
	if calls, open := handler.calls.Load(), handler.open.Load(); calls != 1 || open != 1 {
		t.Errorf("%d calls of the handler, %d are open; want one", calls, open)
	}
	cancel()
	await(t, &agents)
	if open := handler.open.Load(); open != 0 {
		t.Errorf("%d calls are open after the last has left", open)
	}
}

func await(t *testing.T, group *sync.WaitGroup) {
	t.Helper()
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(limit):
		t.Fatalf("timed out after %v", limit)
	}
}

// TestDifferentRequests checks that only equal requests are shared.
func TestDifferentRequests(t *testing.T) {
	handler := &counted{more: make(chan struct{})}
	shared := coalesce.Wrap(handler)
	ctx, cancel := context.WithCancel(t.Context())
	var agents, first sync.WaitGroup
	requests := []discovery.Request{
		{}, {Details: "x"}, {Properties: map[string][]byte{"A": nil}}, {Properties: map[string][]byte{"A": {}}},
		{Properties: map[string][]byte{"A": []byte("v")}}, {Properties: map[string][]byte{"A": nil, "B": nil}},
	}
	first.Add(len(requests))
	for _, request := range requests {
		agents.Go(func() {
			_ = shared.Discover(ctx, request, func([]discovery.Device) error { first.Done(); return nil }) // ends with ctx
		})
	}
	await(t, &first)
	if calls := int(handler.calls.Load()); calls != len(requests) {
		t.Errorf("%d calls for %d requests", calls, len(requests))
	}
	cancel()
	await(t, &agents)
}

// TestFailure checks that a failed discovery ends all its calls, and that the next call
// starts another.
func TestFailure(t *testing.T) {
	errBroken := errors.New("the bus is off")
	var calls atomic.Int32
	broken := make(chan struct{})
	shared := coalesce.Wrap(function(func(_ context.Context, _ discovery.Request, send func([]discovery.Device) error) error {
		calls.Add(1)
		if err := send(nil); err != nil {
			return err
		}
		<-broken
		return errBroken
	}))
	var agents, first sync.WaitGroup
	first.Add(3)
	for range 3 {
		agents.Go(func() {
			err := shared.Discover(t.Context(), discovery.Request{}, func([]discovery.Device) error { first.Done(); return nil })
			if !errors.Is(err, errBroken) {
				t.Errorf("ended with %v", err)
			}
		})
	}
	await(t, &first)
	close(broken)
	await(t, &agents)
	if err := shared.Discover(t.Context(), discovery.Request{}, func([]discovery.Device) error { return nil }); !errors.Is(err, errBroken) {
		t.Error(err)
	}
	if got := calls.Load(); got != 2 {
		t.Errorf("%d calls of the handler, want two", got)
	}
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
	var agents sync.WaitGroup
	open := func() (end func()) {
		ctx, cancel := context.WithCancel(t.Context())
		var first sync.WaitGroup
		first.Add(1)
		agents.Go(func() {
			_ = shared.Discover(ctx, discovery.Request{}, func([]discovery.Device) error { first.Done(); return nil }) // ends with ctx
		})
		await(t, &first)
		return cancel
	}
	open()()
	<-ending
	end := open()
	if got := calls.Load(); got != 2 {
		t.Errorf("%d calls of the handler, want two", got)
	}
	end()
	close(released)
	await(t, &agents)
}

// TestCallAfterAFailure checks that a call does not join a discovery that has failed, although
// not all its calls have ended.
func TestCallAfterAFailure(t *testing.T) {
	errBroken := errors.New("the bus is off")
	var calls atomic.Int32
	broken, released := make(chan struct{}), make(chan struct{})
	shared := coalesce.Wrap(function(func(_ context.Context, _ discovery.Request, send func([]discovery.Device) error) error {
		calls.Add(1)
		if err := send(nil); err != nil {
			return err
		}
		<-broken
		return errBroken
	}))
	var slow, first sync.WaitGroup
	first.Add(1)
	slow.Go(func() {
		err := shared.Discover(t.Context(), discovery.Request{}, func([]discovery.Device) error { first.Done(); <-released; return nil })
		if !errors.Is(err, errBroken) {
			t.Errorf("the slow one ended with %v", err)
		}
	})
	await(t, &first)
	for want := int32(1); want <= 2; want++ {
		err := shared.Discover(t.Context(), discovery.Request{}, func([]discovery.Device) error {
			if want == 1 {
				close(broken)
			}
			return nil
		})
		if got := calls.Load(); got != want || !errors.Is(err, errBroken) {
			t.Errorf("%d calls of the handler, want %d, and %v", got, want, err)
		}
	}
	close(released)
	await(t, &slow)
}
