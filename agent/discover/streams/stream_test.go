package streams

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"akri.sh/akri/agent/discover/registry"
	"akri.sh/akri/discovery/protocol"
)

// discoverFunc is a discovery handler.
type discoverFunc func(call grpc.ServerStreamingServer[protocol.DiscoverResponse]) error

// events records what a stream reports.
type events struct {
	mu       sync.Mutex
	openings int
	lists    []string // the first device of each message
	failures []error
	wereOpen int // failures of open streams
	// registrations are how often the handler registers after the end of a call.
	registrations int
}

func (e *events) opened(*stream) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.openings++
}

func (e *events) received(_ *stream, message *protocol.DiscoverResponse) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lists = append(e.lists, message.GetDevices()[0].GetId())
}

func (e *events) broke(s *stream, wasOpen bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.registrations > 0 {
		e.registrations--
		s.retryNow()
	}
	e.failures = append(e.failures, err)
	if wasOpen {
		e.wereOpen++
	}
}

func (e *events) closed(*stream) {}

// runStream runs a stream from a handler for a time, on a simulated clock.
func runStream(t *testing.T, handler discoverFunc, during time.Duration, check func(*testing.T, *events)) {
	runEvents(t, handler, &events{}, during, check)
}

// runEvents is runStream with events that a test has prepared.
func runEvents(t *testing.T, handler discoverFunc, seen *events, during time.Duration, check func(*testing.T, *events)) {
	synctest.Test(t, func(t *testing.T) {
		listener := bufconn.Listen(64 << 10)
		server := grpc.NewServer(grpc.WaitForHandlers(true))
		protocol.RegisterDiscoveryHandlerServer(server, &handlerServer{discover: handler})
		var running sync.WaitGroup
		running.Go(func() { server.Serve(listener) })
		ctx, cancel := context.WithCancel(t.Context())
		connect := func(context.Context, registry.Endpoint) (*grpc.ClientConn, error) {
			return grpc.NewClient("passthrough:///handler", grpc.WithTransportCredentials(insecure.NewCredentials()),
				grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
		}
		s := newStream(registry.Entry{Endpoint: usb}, &protocol.DiscoverRequest{}, connect, cancel)
		running.Go(func() { s.run(ctx, seen) })
		time.Sleep(during)
		synctest.Wait()
		seen.mu.Lock()
		check(t, seen)
		seen.mu.Unlock()
		cancel()
		server.Stop()
		running.Wait()
	})
}

type handlerServer struct {
	protocol.UnimplementedDiscoveryHandlerServer

	discover discoverFunc
}

func (s *handlerServer) Discover(_ *protocol.DiscoverRequest, call grpc.ServerStreamingServer[protocol.DiscoverResponse]) error {
	return s.discover(call)
}

func TestAHandlerThatEndsEachStreamIsCalledRarely(t *testing.T) {
	handler := func(call grpc.ServerStreamingServer[protocol.DiscoverResponse]) error { return call.Send(devices("a")) }
	runStream(t, handler, 10*time.Minute, func(t *testing.T, seen *events) {
		if len(seen.lists) < 30 || len(seen.lists) > 70 {
			t.Errorf("called %d times in ten minutes, want about one call in %s", len(seen.lists), maxRetryDelay)
		}
		if len(seen.failures) == 0 || reason(seen.failures[0]) != "the handler ended the stream: look at its log" {
			t.Errorf("the failures are %v; want a hint at the handler's log", seen.failures)
		}
	})
}

// A handler that registers each time its stream has ended is called about as rarely, and the
// lists of all its calls together have one rate.
func TestAHandlerThatRegistersAfterEachStreamIsCalledRarely(t *testing.T) {
	const lists = 20 // of each call
	var calls atomic.Int64
	handler := func(call grpc.ServerStreamingServer[protocol.DiscoverResponse]) error {
		calls.Add(1)
		for range lists {
			if err := call.Send(devices("a")); err != nil {
				return err
			}
			time.Sleep(10 * time.Millisecond)
		}
		return nil
	}
	seen := &events{registrations: 1000}
	runEvents(t, handler, seen, 10*time.Minute, func(t *testing.T, seen *events) {
		if n := calls.Load(); n < 30 || n > 80 {
			t.Errorf("called %d times in ten minutes, want about one call in %s, and one more in %s", n, maxRetryDelay, minWakeInterval)
		}
	})
	calls.Store(0)
	seen = &events{registrations: 1000}
	runEvents(t, handler, seen, 10*time.Second, func(t *testing.T, seen *events) {
		if most := handleBurst + 10*handleRate + 1; len(seen.lists) > most || calls.Load() < 3 {
			t.Errorf("%d lists of %d calls were handled in ten seconds, want at most %d of several calls", len(seen.lists), calls.Load(), most)
		}
	})
}

// A handler that was gone is called at once when it registers, and soon again if it does not
// serve yet. Only one registration in a minute counts.
func TestAHandlerThatWasGoneIsCalledAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var attempts []time.Time
		ctx, cancel := context.WithCancel(t.Context())
		s := newStream(registry.Entry{Endpoint: usb}, &protocol.DiscoverRequest{},
			func(context.Context, registry.Endpoint) (*grpc.ClientConn, error) {
				mu.Lock()
				defer mu.Unlock()
				attempts = append(attempts, time.Now())
				return nil, errors.New("no such file")
			}, cancel)
		var running sync.WaitGroup
		running.Go(func() { s.run(ctx, &events{}) })
		within := func(limit time.Duration) int { // attempts after a registration
			mu.Lock()
			attempts = nil
			mu.Unlock()
			s.retryNow()
			time.Sleep(limit)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			return len(attempts)
		}
		time.Sleep(time.Hour + time.Millisecond)
		synctest.Wait()
		for recent := false; !recent; { // so that the next one is far
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			mu.Lock()
			recent = time.Since(attempts[len(attempts)-1]) < time.Second
			mu.Unlock()
		}
		if n := within(time.Second); n < 4 {
			t.Errorf("%d attempts in the second after a registration, want one at once and more soon", n)
		}
		time.Sleep(minWakeInterval / 2)
		if n := within(maxRetryDelay / 2); n > 1 {
			t.Errorf("%d attempts after another registration within a minute, want none because of it", n)
		}
		cancel()
		running.Wait()
	})
}

func TestAHandlerThatFailsEveryCallIsNeverOpen(t *testing.T) {
	handler := func(grpc.ServerStreamingServer[protocol.DiscoverResponse]) error {
		time.Sleep(time.Second)
		return status.Error(codes.Unavailable, "the bus is off")
	}
	runStream(t, handler, 10*time.Minute, func(t *testing.T, seen *events) {
		if seen.openings > 0 || seen.wereOpen > 0 || len(seen.failures) == 0 || reason(seen.failures[0]) != "the bus is off" {
			t.Errorf("opened %d times, failures %v; want failures only", seen.openings, seen.failures)
		}
	})
}

func TestASilentHandlerIsOpen(t *testing.T) {
	handler := func(call grpc.ServerStreamingServer[protocol.DiscoverResponse]) error {
		<-call.Context().Done()
		return nil
	}
	runStream(t, handler, steadyAfter-time.Second, func(t *testing.T, seen *events) {
		if seen.openings != 0 {
			t.Errorf("opened %d times before %s", seen.openings, steadyAfter)
		}
	})
	runStream(t, handler, steadyAfter+time.Second, func(t *testing.T, seen *events) {
		if seen.openings != 1 || len(seen.failures) != 0 {
			t.Errorf("opened %d times, failures %v; want one open stream", seen.openings, seen.failures)
		}
	})
}

// A handler that sends all the time costs bounded work, and its last message counts.
func TestOnlyTheNewestMessageCounts(t *testing.T) {
	const seconds = 10
	handler := func(call grpc.ServerStreamingServer[protocol.DiscoverResponse]) error {
		for range seconds * 1000 {
			if err := call.Send(devices("old")); err != nil {
				return err
			}
			time.Sleep(time.Millisecond)
		}
		if err := call.Send(devices("new")); err != nil {
			return err
		}
		<-call.Context().Done()
		return nil
	}
	runStream(t, handler, seconds*time.Second+2*time.Second, func(t *testing.T, seen *events) {
		if most := handleBurst + (seconds+2)*handleRate; len(seen.lists) > most || len(seen.lists) < seconds*handleRate {
			t.Errorf("%d lists were handled, want at most %d", len(seen.lists), most)
		}
		if last := seen.lists[len(seen.lists)-1]; last != "new" || len(seen.failures) > 0 {
			t.Errorf("the last list has %q, want new; failures %v", last, seen.failures)
		}
	})
}

func TestATooLargeMessage(t *testing.T) {
	handler := func(call grpc.ServerStreamingServer[protocol.DiscoverResponse]) error {
		message := devices("a")
		message.Devices[0].Properties = map[string]string{"BIG": strings.Repeat("x", maxMessageBytes)}
		return call.Send(message)
	}
	runStream(t, handler, time.Second, func(t *testing.T, seen *events) {
		if len(seen.failures) == 0 || len(seen.lists) > 0 {
			t.Fatalf("lists %v, failures %v", seen.lists, seen.failures)
		}
		if err := seen.failures[0]; class(err) != "too_large" || !strings.Contains(reason(err), "larger than 4 MiB: restrict discoveryDetails") {
			t.Errorf("the failure is %s: %q", class(err), reason(err))
		}
	})
}

func TestClass(t *testing.T) {
	for want, err := range map[string]error{
		"connect": &connectError{context.DeadlineExceeded},
		"ended":   errEnded,
		"refused": status.Error(codes.InvalidArgument, "want numbers"),
		"failed":  status.Error(codes.Unavailable, "the bus is off"),
	} {
		if got := class(err); got != want {
			t.Errorf("%v: class %s, want %s", err, got, want)
		}
	}
}
