package handlertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/conformance"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// list is a list of devices that can be changed while handlers are open.
type list struct {
	mu      sync.Mutex
	devices []discovery.Device
	changed chan struct{}
	// over is closed when the test has ended.
	over chan struct{}
}

func newList(ids ...string) *list {
	l := &list{changed: make(chan struct{}), over: make(chan struct{})}
	l.set(ids...)
	return l
}

func (l *list) set(ids ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.devices = nil
	for _, id := range ids {
		l.devices = append(l.devices, discovery.Device{ID: id, Properties: map[string]string{"ID": id}})
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *list) get() ([]discovery.Device, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.devices), l.changed
}

type sendFunc = func([]discovery.Device) error

type function func(ctx context.Context, request discovery.Request, send sendFunc) error

func (f function) Discover(ctx context.Context, request discovery.Request, send func([]discovery.Device) error) error {
	return f(ctx, request, send)
}

// correct is a handler that keeps the contract.
func correct(l *list) function {
	return func(ctx context.Context, request discovery.Request, send sendFunc) error {
		if request.Details != "good" || string(request.Properties["KEY"]) != "value" {
			return discovery.Invalid("discoveryDetails: want good, not %q", request.Details)
		}
		for {
			devices, changed := l.get()
			if err := send(devices); err != nil {
				return err
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-changed:
			}
		}
	}
}

func sample(l *list) Case {
	return Case{
		Details: "good", Properties: map[string][]byte{"KEY": []byte("value")}, Invalid: []string{"bad", ""}, MinDevices: 1,
		Change: func(context.Context) error { l.set("a", "c"); return nil },
		Quiet:  100 * time.Millisecond, Patience: 3 * time.Second,
	}
}

func TestRun(t *testing.T) {
	l := newList("a", "b")
	Run(t, correct(l), sample(l))
}

// TestNoDevices checks that a handler without devices passes.
func TestNoDevices(t *testing.T) {
	l := newList()
	what := sample(l)
	what.MinDevices, what.Change = 0, nil
	for _, result := range check(t, correct(l), what) {
		aboutDevices := strings.Contains(result.Rule, "device") || result.Rule == "sends changes"
		if result.Err != nil || (result.Skipped != "") != aboutDevices {
			t.Errorf("%s: %v, skipped because %q", result.Rule, result.Err, result.Skipped)
		}
	}
}

// block waits for the end of a call.
func block(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// broken are handlers that each break a rule.
var broken = map[string]struct {
	rule   string
	text   string
	handle func(l *list) function // instead of what follows correct discoveryDetails
}{
	"no empty list": {"first list", "no list was sent", func(*list) function {
		return func(ctx context.Context, _ discovery.Request, _ sendFunc) error { return block(ctx) }
	}},
	"ends after the first list": {"stays open", "the call ended", func(l *list) function {
		return func(_ context.Context, _ discovery.Request, send sendFunc) error {
			devices, _ := l.get()
			return send(devices)
		}
	}},
	"fails": {"first list", "the bus is off", func(*list) function {
		return func(context.Context, discovery.Request, sendFunc) error { return errors.New("the bus is off") }
	}},
	"an empty id":   {"device ids", "has no id", sendOnly(discovery.Device{})},
	"a repeated id": {"device ids", `the id "a"`, sendOnly(discovery.Device{ID: "a"}, discovery.Device{ID: "a"})},
	"a property with =": {"device properties", `the property "A=B"`,
		sendOnly(discovery.Device{ID: "a", Properties: map[string]string{"A=B": ""}})},
	"a large property": {"device properties", "more than 8192 bytes",
		sendOnly(discovery.Device{ID: "a", Properties: map[string]string{"A": strings.Repeat("x", 8193)}})},
	"a relative mount": {"mounts and device files", `"tmp" of a mount or device file is not a clean absolute path`,
		sendOnly(discovery.Device{ID: "a", Mounts: []discovery.Mount{{HostPath: "tmp", ContainerPath: "/tmp"}}})},
	"a path with ..": {"mounts and device files", "is not a clean absolute path",
		sendOnly(discovery.Device{ID: "a", DeviceSpecs: []discovery.DeviceSpec{{HostPath: "/dev/../a", ContainerPath: "/a", Permissions: "r"}}})},
	"permissions in another order": {"mounts and device files", `are "mr"`,
		sendOnly(discovery.Device{ID: "a", DeviceSpecs: []discovery.DeviceSpec{{HostPath: "/a", ContainerPath: "/a", Permissions: "mr"}}})},
	"one call at a time": {"overlapping calls", "call 2 of 5", func(l *list) function {
		var mu sync.Mutex
		return func(ctx context.Context, request discovery.Request, send sendFunc) error {
			for !mu.TryLock() {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(time.Millisecond):
				}
			}
			defer mu.Unlock()
			return correct(l)(ctx, request, send)
		}
	}},
	"another id for each call": {"same list for each call", `is missing: send full lists`, func(*list) function {
		var count atomic.Int64
		return func(ctx context.Context, _ discovery.Request, send sendFunc) error {
			id := fmt.Sprint("a-", count.Add(1))
			return errors.Join(send([]discovery.Device{{ID: id}, {ID: id + "x"}}), block(ctx))
		}
	}},
	"only what is new": {"same list for each call", `the device "a" is new`, func(l *list) function {
		return func(ctx context.Context, _ discovery.Request, send sendFunc) error {
			known := map[string]bool{}
			for {
				devices, changed := l.get()
				added := slices.DeleteFunc(devices, func(d discovery.Device) bool { return known[d.ID] })
				for _, d := range added {
					known[d.ID] = true
				}
				if err := send(added); err != nil {
					return err
				}
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-changed:
				}
			}
		}
	}},
	"changes are not sent": {"sends changes", "no list was sent", func(l *list) function {
		return func(ctx context.Context, _ discovery.Request, send sendFunc) error {
			devices, _ := l.get()
			return errors.Join(send(devices), block(ctx))
		}
	}},
	"calls end together": {"independent calls", "the call ended", func(l *list) function {
		var mu sync.Mutex
		gone := make(chan struct{})
		return func(ctx context.Context, request discovery.Request, send sendFunc) error {
			mu.Lock()
			others := gone
			mu.Unlock()
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				select {
				case <-others:
					cancel()
				case <-ctx.Done():
				}
			}()
			_ = correct(l)(ctx, request, send)
			<-ended
			mu.Lock()
			defer mu.Unlock()
			if gone == others {
				close(gone)
				gone = make(chan struct{})
			}
			return nil
		}
	}},
	"few threads that are not released": {"cancelled calls are released", "calls that were cancelled: no list was sent",
		func(l *list) function {
			threads := make(chan struct{}, 25)
			return func(ctx context.Context, request discovery.Request, send sendFunc) error {
				select {
				case threads <- struct{}{}: // never released
				case <-ctx.Done():
					return ctx.Err()
				}
				return correct(l)(ctx, request, send)
			}
		}},
	"accepts wrong details": {"refusal", "not refused: a list of 2 devices was sent", func(l *list) function {
		return func(ctx context.Context, request discovery.Request, send sendFunc) error {
			request.Details = "good"
			return correct(l)(ctx, request, send)
		}
	}},
	"refuses without the code": {"refusal", "refused with Unavailable, want INVALID_ARGUMENT", func(l *list) function {
		return func(ctx context.Context, request discovery.Request, send sendFunc) error {
			if request.Details != "good" {
				return errors.New("bad details")
			}
			return correct(l)(ctx, request, send)
		}
	}},
	"refuses without a text": {"refusal", "refused without a text", func(l *list) function {
		return func(ctx context.Context, request discovery.Request, send sendFunc) error {
			if request.Details != "good" {
				return discovery.Invalid("")
			}
			return correct(l)(ctx, request, send)
		}
	}},
	"does not survive": {"works after a refusal", "no list was sent", func(l *list) function {
		var dead atomic.Bool
		return func(ctx context.Context, request discovery.Request, send sendFunc) error {
			if dead.Load() {
				return block(ctx)
			}
			err := correct(l)(ctx, request, send)
			if request.Details == "" { // the last of the invalid ones
				dead.Store(true)
			}
			return err
		}
	}},
	"ignores the context": {returns, "calls have not returned", func(l *list) function {
		return func(ctx context.Context, request discovery.Request, send sendFunc) error {
			err := correct(l)(ctx, request, send)
			if request.Details == "good" {
				<-l.over
			}
			return err
		}
	}},
	"sends from two goroutines": {sendsOneAtATime, "while another call of it had not returned", func(l *list) function {
		return func(ctx context.Context, request discovery.Request, send sendFunc) error {
			var both sync.WaitGroup
			for range 2 {
				both.Go(func() {
					devices, _ := l.get()
					for range 1000 {
						if send(devices) != nil {
							return
						}
					}
				})
			}
			both.Wait()
			return correct(l)(ctx, request, send)
		}
	}},
	"leaves a goroutine": {noGoroutines, "found unexpected goroutines", func(l *list) function {
		return func(ctx context.Context, request discovery.Request, send sendFunc) error {
			go func() { <-l.over }()
			return correct(l)(ctx, request, send)
		}
	}},
}

func sendOnly(devices ...discovery.Device) func(*list) function {
	return func(*list) function {
		return func(ctx context.Context, _ discovery.Request, send sendFunc) error {
			return errors.Join(send(devices), block(ctx))
		}
	}
}

// TestBrokenHandlers checks that a handler that breaks a rule fails its check.
func TestBrokenHandlers(t *testing.T) {
	for name, tc := range broken {
		t.Run(name, func(t *testing.T) {
			if tc.rule != noGoroutines {
				t.Parallel()
			}
			l := newList("a", "b")
			defer close(l.over)
			what := sample(l)
			what.Patience = time.Second
			results := check(t, tc.handle(l), what)
			at := slices.IndexFunc(results, func(result conformance.Result) bool { return result.Rule == tc.rule })
			if at < 0 {
				t.Fatalf("%s is not checked: %v", tc.rule, results)
			}
			if err := results[at].Err; err == nil || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("%s: got %v, want %q\n%+v", tc.rule, err, tc.text, results)
			}
		})
	}
}
