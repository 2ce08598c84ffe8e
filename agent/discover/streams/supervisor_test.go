package streams

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/agent/discover/hostpaths"
	"akri.sh/akri/agent/discover/registry"
	"akri.sh/akri/discovery/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a discovery handler whose messages a test sends.
type fake struct {
	protocol.UnimplementedDiscoveryHandlerServer

	address string
	asked   chan *protocol.DiscoverRequest
	send    chan *protocol.DiscoverResponse
	fail    chan error
	called  chan string // authorities
	// call is held by the current call, so that no message reaches one that is
	// ending.
	call sync.Mutex
}

// serve starts the handler and returns a function that stops it.
func (f *fake) serve(t *testing.T) (stop func()) {
	t.Helper()
	os.Remove(f.address)
	listener, err := net.Listen("unix", f.address)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.WaitForHandlers(true))
	protocol.RegisterDiscoveryHandlerServer(server, f)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		server.Serve(listener)
	}()
	return func() {
		server.Stop()
		<-ended
	}
}

func (f *fake) Discover(request *protocol.DiscoverRequest, s grpc.ServerStreamingServer[protocol.DiscoverResponse]) error {
	f.call.Lock()
	defer f.call.Unlock()
	headers, _ := metadata.FromIncomingContext(s.Context())
	f.called <- strings.Join(headers.Get(":authority"), ",")
	f.asked <- request
	for {
		select {
		case message := <-f.send:
			if err := s.Send(message); err != nil {
				return err
			}
		case err := <-f.fail:
			return err
		case <-s.Context().Done():
			return nil
		}
	}
}

func devices(ids ...string) *protocol.DiscoverResponse {
	message := &protocol.DiscoverResponse{}
	for _, id := range ids {
		message.Devices = append(message.Devices, &protocol.Device{Id: id})
	}
	return message
}

type setup struct {
	t          *testing.T
	registry   *registry.Registry
	supervisor *Supervisor
	changed    chan types.NamespacedName
	states     *stateLog
	metrics    *prometheus.Registry
}

// stateLog records the states that the registry logs.
type stateLog struct {
	slog.Handler

	mu     sync.Mutex
	states []string
}

func (l *stateLog) Enabled(context.Context, slog.Level) bool { return true }

func (l *stateLog) Handle(_ context.Context, record slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if state, found := strings.CutPrefix(record.Message, "Discovery handler is "); found {
		l.states = append(l.states, state)
	}
	return nil
}

func (l *stateLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.states, " ")
}

func newSetup(t *testing.T) *setup {
	states := &stateLog{Handler: slog.DiscardHandler}
	log := slog.New(states)
	s := &setup{
		t: t, registry: registry.New(t.TempDir(), registry.Network{}, log), states: states,
		changed: make(chan types.NamespacedName, 1000), metrics: prometheus.NewRegistry(),
	}
	s.supervisor = NewSupervisor(
		s.registry,
		hostpaths.Policy{},
		func(name types.NamespacedName) { s.changed <- name },
		NewMetrics(s.metrics),
		log,
	)
	t.Cleanup(s.supervisor.Close)
	return s
}

func (s *setup) handler(name string) *fake {
	s.t.Helper()
	directory, err := os.MkdirTemp("", "akri") // short: socket paths are limited
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { os.RemoveAll(directory) })
	return &fake{
		address: filepath.Join(directory, name+".sock"), asked: make(chan *protocol.DiscoverRequest, 10),
		send: make(chan *protocol.DiscoverResponse), fail: make(chan error), called: make(chan string, 10),
	}
}

func (s *setup) register(f *fake) registry.Endpoint {
	s.t.Helper()
	endpoint := registry.Endpoint{Name: "h", Address: f.address}
	if err := s.registry.Register(registry.Entry{Endpoint: endpoint}); err != nil {
		s.t.Fatal(err)
	}
	return endpoint
}

var door = types.NamespacedName{Namespace: "plant", Name: "door"}

func (s *setup) ask(details string) {
	s.supervisor.Discover(door, "h", &protocol.DiscoverRequest{DiscoveryDetails: details})
}

// await sends the request again, as the agent does, until the snapshot matches.
func (s *setup) await(details, want string) {
	s.t.Helper()
	end := time.After(10 * time.Second)
	for {
		s.ask(details)
		got := textOf(s.supervisor.Snapshot(door))
		got, _, _ = strings.Cut(got, " @")
		if got == want {
			return
		}
		select {
		case <-s.changed:
		case <-time.After(100 * time.Millisecond):
		case <-end:
			s.t.Fatalf("the snapshot is %q, want %q", got, want)
		}
	}
}

func (s *setup) wantRequest(f *fake, details string) {
	s.t.Helper()
	select {
	case request := <-f.asked:
		if request.GetDiscoveryDetails() != details {
			s.t.Errorf("the request has details %q, want %q", request.GetDiscoveryDetails(), details)
		}
	case <-time.After(10 * time.Second):
		s.t.Fatalf("the handler got no request with details %q", details)
	}
}

// awaitOffline waits until one of the two endpoints is offline.
func (s *setup) awaitOffline() {
	s.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for s.registry.Snapshot()[0].State != registry.Offline && s.registry.Snapshot()[1].State != registry.Offline {
		if time.Now().After(deadline) {
			s.t.Fatalf("states are %+v, want one Offline", s.registry.Snapshot())
		}
		time.Sleep(time.Millisecond)
	}
}

func TestStreams(t *testing.T) {
	s := newSetup(t)
	s.ask("one") // before any handler registers
	first, second := s.handler("first"), s.handler("second")
	stop := first.serve(t)
	endpoint := s.register(first)
	if name := <-s.changed; name != door {
		t.Fatalf("a registration notified %s", name)
	}
	s.ask("one")
	s.wantRequest(first, "one")
	if authority := <-first.called; authority != "localhost" {
		t.Errorf("the :authority is %q, want localhost: servers in other languages refuse paths", authority)
	}
	first.send <- devices("a", "b")
	s.await("one", "a b settled")
	if known := s.registry.Snapshot(); known[0].State != registry.Active {
		t.Errorf("the endpoint is %s, want Active", known[0].State)
	}

	// A second handler of the same name registers. Its devices are added.
	stopSecond := second.serve(t)
	defer stopSecond()
	s.register(second)
	s.await("one", "a b settled")
	s.wantRequest(second, "one")
	second.send <- devices("b", "c")
	s.await("one", "a b c settled")
	first.send <- devices("a")
	s.await("one", "a b c settled")

	// Another request reopens both streams. Devices are kept until their first message.
	s.await("two", "a b c settled")
	s.wantRequest(first, "two")
	s.wantRequest(second, "two")
	first.send <- devices()
	s.await("two", "b c settled")
	second.fail <- status.Error(codes.InvalidArgument, "want numbers")
	s.await("two", "b c settled !"+second.address+" want numbers")
	s.await("three", "b c settled")
	s.wantRequest(second, "three")
	second.send <- devices("c")
	s.await("three", "c settled")
	s.wantRequest(first, "three")
	first.send <- devices("a")
	s.await("three", "a c settled")

	// The first handler restarts. It is dialled at once when it registers.
	stop()
	s.awaitOffline()
	stop = first.serve(t)
	defer stop()
	if err := s.registry.Register(registry.Entry{Endpoint: endpoint}); err != nil {
		t.Fatal(err)
	}
	s.wantRequest(first, "three")
	s.await("three", "a c settled")
	first.send <- devices("a", "d")
	s.await("three", "a c d settled")

	s.supervisor.Drop(door)
	if got := textOf(s.supervisor.Snapshot(door)); got != "" {
		t.Errorf("a dropped Configuration has %q", got)
	}
}

// While the request is incomplete, time does not tell that there are no devices.
func TestAnIncompleteRequest(t *testing.T) {
	s := newSetup(t)
	s.supervisor.Discover(door, "h", nil)
	if next := s.supervisor.Snapshot(door).Next; !next.IsZero() {
		t.Errorf("the snapshot changes at %s", next)
	}
	s.ask("one")
	if s.supervisor.Snapshot(door).Next.IsZero() {
		t.Error("without an endpoint, the snapshot is never settled")
	}
}

// A request with other properties tells nothing about devices that its first list lacks; one
// with other details does.
func TestWhatAnotherRequestChanges(t *testing.T) {
	s := newSetup(t)
	f := s.handler("asked")
	defer f.serve(t)()
	s.register(f)
	listed := func(details, password string) time.Time {
		t.Helper()
		s.supervisor.Discover(door, "h", &protocol.DiscoverRequest{
			DiscoveryDetails: details, DiscoveryProperties: map[string]*protocol.ByteData{"PASSWORD": {Vec: []byte(password)}},
		})
		s.wantRequest(f, details)
		f.send <- devices(password)
		for {
			if snapshot := s.supervisor.Snapshot(door); textOf(snapshot) == password+" settled" {
				return snapshot.Listed
			}
			<-s.changed
		}
	}
	first := listed("one", "a")
	rotated := listed("one", "b")
	edited := listed("two", "c")
	if !first.Before(rotated) || !edited.Equal(rotated) {
		t.Errorf("first lists at %s, %s and %s, want another time with the second only", first, rotated, edited)
	}
}

// A registration concerns the streams of its endpoint, and the Configurations only if it
// changes what the agent knows.
func TestARegistrationOfAKnownEndpoint(t *testing.T) {
	s := newSetup(t)
	first, second := s.handler("first"), s.handler("second")
	defer first.serve(t)()
	defer second.serve(t)()
	here, there := s.register(first), s.register(second)
	s.ask("")
	s.wantRequest(first, "")
	s.wantRequest(second, "")
	woken := func(endpoint registry.Endpoint) int {
		s.supervisor.mu.Lock()
		defer s.supervisor.mu.Unlock()
		return len(s.supervisor.discoveries[door].streams[endpoint].wake)
	}
	for len(s.changed) > 0 {
		<-s.changed
	}
	s.register(first)
	if len(s.changed) > 0 || woken(here) != 1 || woken(there) != 0 {
		t.Errorf("known: %d notifications, woken %d and %d streams; want only the endpoint's stream woken",
			len(s.changed), woken(here), woken(there))
	}
	if err := s.registry.Register(registry.Entry{Endpoint: here, Shared: true}); err != nil || len(s.changed) != 1 {
		t.Errorf("changed: %d notifications, %v; want one", len(s.changed), err)
	}
}

// A handler that sends its list and ends the stream, or refuses its request, is available all
// the time. It is offline once it does not answer, and Waiting if no Configuration uses it.
func TestAHandlerThatAnswersStaysActive(t *testing.T) {
	for reason, answer := range map[string]func(*fake){
		"ended":   func(f *fake) { f.send <- devices("a"); f.fail <- nil },
		"refused": func(f *fake) { f.fail <- status.Error(codes.InvalidArgument, "want numbers") },
	} {
		t.Run(reason, func(t *testing.T) {
			s := newSetup(t)
			f := s.handler("answering")
			stop := f.serve(t)
			s.register(f)
			s.ask("")
			for range 4 {
				s.wantRequest(f, "")
				answer(f)
			}
			s.wantRequest(f, "")
			if states := s.states.String(); states != "Active" {
				t.Errorf("the states were %s, want Active all the time", states)
			}
			families, err := s.metrics.Gather()
			if err != nil {
				t.Fatal(err)
			}
			for _, family := range families {
				if counted := family.GetMetric()[0].String(); family.GetName() == "akri_discovery_errors_total" &&
					(!strings.Contains(counted, reason) || !strings.Contains(counted, "value:4")) {
					t.Errorf("4 answers are counted as %s", counted)
				}
			}
			answer(f)
			stop()
			s.awaitStates("Active Offline")

			defer f.serve(t)()
			s.register(f)
			s.wantRequest(f, "")
			answer(f)
			s.awaitStates("Active Offline Active")
			s.supervisor.Drop(door)
			s.awaitStates("Active Offline Active Waiting")
		})
	}
}

func (s *setup) awaitStates(want string) {
	s.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for s.states.String() != want {
		if time.Now().After(deadline) {
			s.t.Fatalf("the states were %s, want %s", s.states, want)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestFaultyListIsReported(t *testing.T) {
	s := newSetup(t)
	f := s.handler("faulty")
	defer f.serve(t)()
	s.register(f)
	s.ask("")
	s.wantRequest(f, "")
	f.send <- devices("a", "", "a")
	s.await("", "a settled !"+f.address+" device 1 of the handler's list has no id and is ignored: this is a bug in the handler")
	f.send <- devices("a")
	s.await("", "a settled")
}

func TestReason(t *testing.T) {
	if got := reason(status.Error(codes.Unavailable, "the bus is off")); got != "the bus is off" {
		t.Errorf("reason is %q", got)
	}
	if got := reason(errors.New("plain")); got != "plain" {
		t.Errorf("reason is %q", got)
	}
	if isRefusal(context.Canceled) {
		t.Error("a cancelled context counts as a refusal")
	}
}
