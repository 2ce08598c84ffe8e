package conformance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"

	"akri.sh/akri/discovery/protocol"
)

// Agent accepts registrations as an agent does.
type Agent struct {
	protocol.UnimplementedRegistrationServer

	dir           string
	registrations chan *protocol.RegisterDiscoveryHandlerRequest
	server        *grpc.Server
	ended         chan struct{}
}

// maxRegistrations bounds the registrations that are not yet read; further ones are
// accepted and dropped.
const maxRegistrations = 100

// ListenAgent starts an Agent in a directory. Start handlers with this directory as
// DISCOVERY_HANDLERS_DIRECTORY.
func ListenAgent(dir string) (*Agent, error) {
	a := &Agent{dir: dir, registrations: make(chan *protocol.RegisterDiscoveryHandlerRequest, maxRegistrations)}
	return a, a.listen()
}

func (a *Agent) listen() error {
	path := filepath.Join(a.dir, protocol.RegistrationSocket)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("create the agent's socket: %w", err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return fmt.Errorf("create the agent's socket: %w", err)
	}
	listener.SetUnlinkOnClose(false) // as the real agent's, whose socket stays
	server, ended := grpc.NewServer(grpc.WaitForHandlers(true)), make(chan struct{})
	protocol.RegisterRegistrationServer(server, a)
	a.server, a.ended = server, ended
	go func() {
		defer close(ended)
		_ = server.Serve(listener) // ends with an error only if it is stopped too early
	}()
	return nil
}

// RegisterDiscoveryHandler implements the Registration service.
func (a *Agent) RegisterDiscoveryHandler(_ context.Context, request *protocol.RegisterDiscoveryHandlerRequest) (*protocol.Empty, error) {
	select {
	case a.registrations <- request:
	default:
	}
	return &protocol.Empty{}, nil
}

// Restart stops the agent, and creates its socket again.
func (a *Agent) Restart() error {
	a.Close()
	for len(a.registrations) > 0 {
		<-a.registrations
	}
	return a.listen()
}

// Close stops the agent, after it has answered.
func (a *Agent) Close() {
	forced := time.AfterFunc(time.Second, a.server.Stop) // a handler may keep a connection in use
	defer forced.Stop()
	a.server.GracefulStop()
	<-a.ended
}

// Await returns the next registration of a handler with a name, or of any if the name
// is empty.
func (a *Agent) Await(ctx context.Context, name string, within time.Duration) (*protocol.RegisterDiscoveryHandlerRequest, error) {
	timer := time.NewTimer(within)
	defer timer.Stop()
	for {
		select {
		case request := <-a.registrations:
			if name == "" || request.GetName() == name {
				return request, nil
			}
		case <-timer.C:
			return nil, fmt.Errorf("no registration within %v", within)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// CheckRegistration waits until a handler has registered with the agent, restarts the
// agent, and waits again. It returns the handler's endpoint, and a result for each rule.
// A name is required only if several handlers register.
func CheckRegistration(ctx context.Context, agent *Agent, name string, patience time.Duration) (endpoint string, results []Result) {
	c := &checker{ctx: ctx}
	var request *protocol.RegisterDiscoveryHandlerRequest
	registered := c.check(Registers, func() error {
		var err error
		request, err = agent.Await(ctx, name, patience)
		return err
	})
	if !registered {
		return "", c.skip("the handler has not registered", ValidRegistration, RegistersAgain)
	}
	c.check(ValidRegistration, func() error { return validate(request) })
	c.check(RegistersAgain, func() error {
		if err := agent.Restart(); err != nil {
			return err
		}
		_, err := agent.Await(ctx, request.GetName(), patience)
		if err != nil {
			return fmt.Errorf("after the agent has restarted: %w: watch the directory for a new %s", err, protocol.RegistrationSocket)
		}
		return nil
	})
	return request.GetEndpoint(), c.results
}

func validate(request *protocol.RegisterDiscoveryHandlerRequest) error {
	switch kind, endpoint := request.GetEndpointType(), request.GetEndpoint(); {
	case request.GetName() == "":
		return errors.New("the name is empty")
	case len(request.GetName()) > maxNameBytes:
		return fmt.Errorf("the name has %d bytes, the limit is %d", len(request.GetName()), maxNameBytes)
	case kind == protocol.RegisterDiscoveryHandlerRequest_UDS:
		if path := strings.TrimPrefix(strings.TrimPrefix(endpoint, "unix://"), "unix:"); !filepath.IsAbs(path) {
			return fmt.Errorf("the endpoint %q is not the absolute path of a Unix socket", shown(endpoint))
		}
	case kind == protocol.RegisterDiscoveryHandlerRequest_NETWORK:
		if host, port, err := net.SplitHostPort(strings.TrimPrefix(endpoint, "http://")); err != nil || host == "" || port == "" {
			return fmt.Errorf("the endpoint %q is not http://HOST:PORT or HOST:PORT", shown(endpoint))
		}
	default:
		return fmt.Errorf("endpoint_type is %d, want UDS (0) or NETWORK (1)", kind)
	}
	return nil
}
