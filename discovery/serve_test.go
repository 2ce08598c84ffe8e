package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const limit = 10 * time.Second

// testAgent accepts registrations.
type testAgent struct {
	protocol.UnimplementedRegistrationServer
	registered chan *protocol.RegisterDiscoveryHandlerRequest
}

func (a *testAgent) RegisterDiscoveryHandler(
	ctx context.Context, request *protocol.RegisterDiscoveryHandlerRequest,
) (*protocol.Empty, error) {
	if all, _ := metadata.FromIncomingContext(ctx); !slices.Equal(all.Get(":authority"), []string{"localhost"}) {
		return nil, status.Error(codes.Internal, "servers in other languages refuse a path as authority")
	}
	a.registered <- request
	return &protocol.Empty{}, nil
}

// startAgent starts an agent and returns a function that stops it.
func startAgent(t *testing.T, dir string) (*testAgent, func()) {
	t.Helper()
	path := filepath.Join(dir, protocol.RegistrationSocket)
	os.Remove(path)
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	a := &testAgent{registered: make(chan *protocol.RegisterDiscoveryHandlerRequest, 10)}
	server := grpc.NewServer(grpc.WaitForHandlers(true))
	protocol.RegisterRegistrationServer(server, a)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		server.Serve(listener)
	}()
	return a, func() {
		server.Stop()
		<-ended
	}
}

func (a *testAgent) await(t *testing.T) *protocol.RegisterDiscoveryHandlerRequest {
	t.Helper()
	select {
	case request := <-a.registered:
		return request
	case <-time.After(limit):
		t.Fatalf("no registration within %s", limit)
		return nil
	}
}

// shortDir returns a directory whose path leaves room for the names of sockets.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "akri")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// serve runs a handler and returns a function that stops it and checks its result.
func serve(t *testing.T, handler discovery.Handler, options discovery.Options) (stop func()) {
	t.Helper()
	options.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- discovery.Serve(ctx, "test", handler, options) }()
	return func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(limit):
			t.Error("the handler did not stop")
		}
	}
}

type function func(ctx context.Context, request discovery.Request, send func([]discovery.Device) error) error

func (f function) Discover(ctx context.Context, request discovery.Request, send func([]discovery.Device) error) error {
	return f(ctx, request, send)
}

var idle = function(func(ctx context.Context, _ discovery.Request, _ func([]discovery.Device) error) error {
	<-ctx.Done()
	return ctx.Err()
})

// registered serves a handler until the test ends, and returns what an agent has got of it.
func registered(t *testing.T, handler discovery.Handler, options discovery.Options) *protocol.RegisterDiscoveryHandlerRequest {
	t.Helper()
	options.Dir = shortDir(t)
	agent, stopAgent := startAgent(t, options.Dir)
	t.Cleanup(stopAgent)
	t.Cleanup(serve(t, handler, options))
	return agent.await(t)
}

// freePort returns a port that nothing uses.
func freePort(t *testing.T) int {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer free.Close()
	return free.Addr().(*net.TCPAddr).Port
}

// answers checks that something listens.
func answers(t *testing.T, network, address string) {
	t.Helper()
	connection, err := net.Dial(network, address)
	if err != nil {
		t.Errorf("%s does not answer: %v", address, err)
		return
	}
	connection.Close()
}

// TestSocket checks that two handlers with one name can use one directory.
func TestSocket(t *testing.T) {
	dir := shortDir(t)
	agent, stopAgent := startAgent(t, dir)
	defer stopAgent()
	defer serve(t, idle, discovery.Options{Dir: dir})()
	first := agent.await(t)
	defer serve(t, idle, discovery.Options{Dir: dir, Socket: "other"})()
	second := agent.await(t)
	if second.GetName() != first.GetName() || second.GetEndpoint() != filepath.Join(dir, "other") {
		t.Errorf("registered %v", second)
	}
	answers(t, "unix", first.GetEndpoint())
	answers(t, "unix", second.GetEndpoint())
}

func TestNetworkHandler(t *testing.T) {
	port := freePort(t)
	request := registered(t, idle, discovery.Options{Host: "127.0.0.1", Port: port})
	want := fmt.Sprintf("http://127.0.0.1:%d", port)
	if request.GetEndpoint() != want || request.GetEndpointType() != protocol.RegisterDiscoveryHandlerRequest_NETWORK {
		t.Errorf("registered %v, want %s, NETWORK", request, want)
	}
}

// During an update, the old handler exits after the new one has started.
func TestAnExitingHandlerKeepsTheSocketOfTheNext(t *testing.T) {
	dir := shortDir(t)
	agent, stopAgent := startAgent(t, dir)
	defer stopAgent()
	stopOld := serve(t, idle, discovery.Options{Dir: dir})
	agent.await(t)
	defer serve(t, idle, discovery.Options{Dir: dir})()
	endpoint := agent.await(t).GetEndpoint()
	stopOld()
	answers(t, "unix", endpoint)
}

// opener serves a handler, and returns a function that calls Discover and waits for the first list.
func opener(t *testing.T, handler discovery.Handler) func(details string) (first *protocol.DiscoverResponse, end func(), err error) {
	t.Helper()
	endpoint := registered(t, handler, discovery.Options{}).GetEndpoint()
	connection, err := grpc.NewClient("unix:"+endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return func(details string) (*protocol.DiscoverResponse, func(), error) {
		ctx, cancel := context.WithCancel(t.Context())
		stream, err := protocol.NewDiscoveryHandlerClient(connection).Discover(ctx, &protocol.DiscoverRequest{
			DiscoveryDetails:    details,
			DiscoveryProperties: map[string]*protocol.ByteData{"SET": {Vec: []byte("x")}, "UNSET": {}},
		})
		if err != nil {
			return nil, cancel, err
		}
		first, err := stream.Recv()
		return first, cancel, err
	}
}

func TestDiscover(t *testing.T) {
	discover := opener(t, function(func(ctx context.Context, request discovery.Request, send func([]discovery.Device) error) error {
		switch request.Details {
		case "bad":
			return discovery.Invalid("details: want %q, not %q", "good", request.Details)
		case "broken":
			return errors.New("the bus is off")
		}
		properties := map[string]string{"SET": string(request.Properties["SET"])}
		if value, named := request.Properties["UNSET"]; named && value == nil {
			properties["UNSET"] = "named"
		}
		if err := send([]discovery.Device{{
			ID: "a", Properties: properties,
			Mounts:      []discovery.Mount{{ContainerPath: "/in", HostPath: "/out", ReadOnly: true}},
			DeviceSpecs: []discovery.DeviceSpec{{ContainerPath: "/dev/a", HostPath: "/dev/b", Permissions: "rw"}},
		}}); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	}))
	if _, _, err := discover("bad"); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), `want "good"`) {
		t.Errorf("bad details: %v", err)
	}
	if _, _, err := discover("broken"); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "the bus is off") {
		t.Errorf("an error of the handler: %v", err)
	}
	message, _, err := discover("good")
	if err != nil {
		t.Fatal(err)
	}
	d := message.GetDevices()[0]
	if d.GetId() != "a" || d.GetProperties()["SET"] != "x" || d.GetProperties()["UNSET"] != "named" ||
		d.GetMounts()[0].GetHostPath() != "/out" || !d.GetMounts()[0].GetReadOnly() || d.GetDeviceSpecs()[0].GetPermissions() != "rw" {
		t.Errorf("the device is %v", d)
	}
}

// TestOpenRequestsAreBounded checks that a request beyond the limit is refused with the
// reason, and that one works again when another has ended.
func TestOpenRequestsAreBounded(t *testing.T) {
	const limit = 1000
	open := opener(t, function(func(ctx context.Context, _ discovery.Request, send func([]discovery.Device) error) error {
		if err := send(nil); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	}))
	var end func()
	for i := range limit {
		var err error
		if _, end, err = open(""); err != nil {
			t.Fatalf("request %d: %v", i+1, err)
		}
	}
	_, _, err := open("")
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "1000 open requests") {
		t.Errorf("request %d: %v", limit+1, err)
	}
	end()
	for deadline := time.Now().Add(5 * time.Second); err != nil; _, _, err = open("") {
		if time.Now().After(deadline) {
			t.Fatalf("after another has ended: %v", err)
		}
	}
}

// TestStaticHandler checks that a static handler answers, and does not register.
func TestStaticHandler(t *testing.T) {
	err := discovery.Serve(t.Context(), "test", idle, discovery.Options{Static: true})
	if err == nil || !strings.Contains(err.Error(), "POD_IP") {
		t.Errorf("a static handler on a Unix socket: %v", err)
	}
	dir, port, reports := shortDir(t), freePort(t), make(chan bool, 1)
	agent, stopAgent := startAgent(t, dir)
	defer stopAgent()
	stop := serve(t, idle, discovery.Options{
		Dir: dir, Host: "127.0.0.1", Port: port, Static: true, OnRegistration: func(listening bool) { reports <- listening },
	})
	if !<-reports {
		t.Error("a static handler reports that it is not registered")
	}
	answers(t, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	stop()
	if len(agent.registered) > 0 {
		t.Errorf("registered %v", <-agent.registered)
	}
}

func TestHandlerRegistersWithEachAgent(t *testing.T) {
	dir := shortDir(t)
	stop := serve(t, idle, discovery.Options{Dir: dir, Shared: true}) // before the agent
	defer stop()
	for round := range 3 {
		agent, stopAgent := startAgent(t, dir)
		request := agent.await(t)
		stopAgent()
		if request.GetName() != "test" || request.GetEndpoint() != filepath.Join(dir, "test.sock") || !request.GetShared() ||
			request.GetEndpointType() != protocol.RegisterDiscoveryHandlerRequest_UDS {
			t.Errorf("round %d: registered %v", round, request)
		}
	}
}

func TestServeErrors(t *testing.T) {
	if err := discovery.Serve(t.Context(), "a/b", idle, discovery.Options{}); err == nil || !strings.Contains(err.Error(), "a/b") {
		t.Errorf("a name with a slash: %v", err)
	}
	err := discovery.Serve(t.Context(), "test", idle, discovery.Options{Dir: "/nowhere"})
	if err == nil || !strings.Contains(err.Error(), "DISCOVERY_HANDLERS_DIRECTORY") {
		t.Errorf("a missing directory: %v", err)
	}
}

func TestOnRegistration(t *testing.T) {
	dir := shortDir(t)
	reports := make(chan bool, 100)
	await := func(want bool) {
		t.Helper()
		for timeout := time.After(limit); ; {
			select {
			case got := <-reports:
				if got == want {
					return
				}
			case <-timeout:
				t.Fatalf("%v was not reported within %s", want, limit)
			}
		}
	}
	defer serve(t, idle, discovery.Options{Dir: dir, OnRegistration: func(registered bool) { reports <- registered }})()
	await(false) // there is no agent yet
	_, stopAgent := startAgent(t, dir)
	await(true)
	stopAgent() // also removes the socket
	await(false)
	_, stopAgent = startAgent(t, dir)
	await(true)
	stopAgent()
}
