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
	"sync"
	"time"

	"google.golang.org/grpc"

	"akri.sh/akri/discovery/protocol"
)

// Agent accepts registrations as an agent does.
type Agent struct {
	protocol.UnimplementedRegistrationServer

	dir    string
	server *grpc.Server
	ended  chan struct{}

	mu sync.Mutex
	// registered are the handlers that have registered since the start, by name.
	registered map[string]*protocol.RegisterDiscoveryHandlerRequest
}

// ListenAgent starts an Agent in a directory. Start handlers with this directory as
// DISCOVERY_HANDLERS_DIRECTORY.
func ListenAgent(dir string) (*Agent, error) {
	a := &Agent{dir: dir}
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
	a.server, a.ended, a.registered = server, ended, map[string]*protocol.RegisterDiscoveryHandlerRequest{}
	go func() {
		defer close(ended)
		_ = server.Serve(listener) // ends with an error only if it is stopped too early
	}()
	return nil
}

// RegisterDiscoveryHandler implements the Registration service.
func (a *Agent) RegisterDiscoveryHandler(_ context.Context, request *protocol.RegisterDiscoveryHandlerRequest) (*protocol.Empty, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.registered[request.GetName()] = request
	return &protocol.Empty{}, nil
}

// Close stops the agent, after it has answered.
func (a *Agent) Close() {
	forced := time.AfterFunc(time.Second, a.server.Stop) // a handler may keep a connection in use
	defer forced.Stop()
	a.server.GracefulStop()
	<-a.ended
}

// Await waits until a handler with a name has registered, or any if the name is empty.
func (a *Agent) Await(ctx context.Context, name string, within time.Duration) (*protocol.RegisterDiscoveryHandlerRequest, error) {
	var request *protocol.RegisterDiscoveryHandlerRequest
	err := await(ctx, within, func() (bool, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		for each := range a.registered {
			if name == "" || name == each {
				request = a.registered[each]
				return true, nil
			}
		}
		return false, fmt.Errorf("no registration within %v", within)
	})
	return request, err
}

// Check waits until a handler has registered, checks its registration, also with an agent
// that has restarted, and then the handler as [Check] does. A name is required only if
// several handlers register.
func (a *Agent) Check(ctx context.Context, name string, what Case) []Result {
	patience := what.withDefaults().Patience
	var request *protocol.RegisterDiscoveryHandlerRequest
	results := run([]rule{
		{"registers", func() (err error) {
			request, err = a.Await(ctx, name, patience)
			return err
		}},
		{"valid registration", func() error { return validate(request) }},
		{"registers again", func() error {
			a.Close()
			if err := a.listen(); err != nil {
				return err
			}
			if _, err := a.Await(ctx, request.GetName(), patience); err != nil {
				return fmt.Errorf("after the agent has restarted: %w: watch the directory for a new %s", err, protocol.RegistrationSocket)
			}
			return nil
		}},
	}, 1, "the handler has not registered")
	if request == nil {
		return results
	}
	return append(results, Check(ctx, request.GetEndpoint(), what)...)
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
