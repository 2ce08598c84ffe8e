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
	for _, endpoint := range []string{first.GetEndpoint(), second.GetEndpoint()} {
		connection, err := net.Dial("unix", endpoint)
		if err != nil {
			t.Errorf("%s does not answer: %v", endpoint, err)
			continue
		}
		connection.Close()
	}
}

func TestNetworkHandler(t *testing.T) {
	dir := shortDir(t)
	agent, stopAgent := startAgent(t, dir)
	defer stopAgent()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	free.Close()
	defer serve(t, idle, discovery.Options{Dir: dir, Host: "127.0.0.1", Port: port})()
	request := agent.await(t)
	if want := fmt.Sprintf(
		"http://127.0.0.1:%d",
		port,
	); request.GetEndpoint() != want ||
		request.GetEndpointType() != protocol.RegisterDiscoveryHandlerRequest_NETWORK {
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
	connection, err := net.Dial("unix", endpoint)
	if err != nil {
		t.Fatalf("the new handler cannot be reached: %v", err)
	}
	connection.Close()
}

func TestDiscover(t *testing.T) {
	dir := shortDir(t)
	agent, stopAgent := startAgent(t, dir)
	defer stopAgent()
	handler := function(func(ctx context.Context, request discovery.Request, send func([]discovery.Device) error) error {
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
	})
	defer serve(t, handler, discovery.Options{Dir: dir})()
	request := agent.await(t)

	connection, err := grpc.NewClient("unix:"+request.GetEndpoint(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	discover := func(details string) (*protocol.DiscoverResponse, error) {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		stream, err := protocol.NewDiscoveryHandlerClient(connection).Discover(ctx, &protocol.DiscoverRequest{
			DiscoveryDetails:    details,
			DiscoveryProperties: map[string]*protocol.ByteData{"SET": {Vec: []byte("x")}, "UNSET": {}},
		})
		if err != nil {
			return nil, err
		}
		return stream.Recv()
	}
	if _, err := discover("bad"); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), `want "good"`) {
		t.Errorf("bad details: %v", err)
	}
	if _, err := discover("broken"); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "the bus is off") {
		t.Errorf("an error of the handler: %v", err)
	}
	message, err := discover("good")
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
	dir := shortDir(t)
	agent, stopAgent := startAgent(t, dir)
	defer stopAgent()
	handler := function(func(ctx context.Context, _ discovery.Request, send func([]discovery.Device) error) error {
		if err := send(nil); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	})
	defer serve(t, handler, discovery.Options{Dir: dir})()
	connection, err := grpc.NewClient("unix:"+agent.await(t).GetEndpoint(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	open := func() (end func(), err error) {
		ctx, cancel := context.WithCancel(t.Context())
		stream, err := protocol.NewDiscoveryHandlerClient(connection).Discover(ctx, &protocol.DiscoverRequest{})
		if err == nil {
			_, err = stream.Recv()
		}
		return cancel, err
	}
	var end func()
	for i := range limit {
		if end, err = open(); err != nil {
			t.Fatalf("request %d: %v", i+1, err)
		}
		defer end()
	}
	if _, err := open(); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "1000 open requests") {
		t.Errorf("request %d: %v", limit+1, err)
	}
	end()
	for deadline := time.Now().Add(5 * time.Second); ; {
		if _, err = open(); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("after another has ended: %v", err)
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

// TestStaticHandler checks that a static handler answers, and does not register.
func TestStaticHandler(t *testing.T) {
	err := discovery.Serve(t.Context(), "test", idle, discovery.Options{Static: true})
	if err == nil || !strings.Contains(err.Error(), "POD_IP") {
		t.Errorf("a static handler on a Unix socket: %v", err)
	}
	dir := shortDir(t)
	agent, stopAgent := startAgent(t, dir)
	defer stopAgent()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	free.Close()
	reports := make(chan bool, 1)
	stop := serve(t, idle, discovery.Options{
		Dir: dir, Host: "127.0.0.1", Port: port, Static: true, OnRegistration: func(listening bool) { reports <- listening },
	})
	if !<-reports {
		t.Error("a static handler reports that it is not registered")
	}
	connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Error(err)
	} else {
		connection.Close()
	}
	stop()
	if len(agent.registered) > 0 {
		t.Errorf("registered %v", <-agent.registered)
	}
}
