package registry

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

	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"akri.sh/akri/discovery/protocol"
	"akri.sh/akri/internal/backoff"
)

// A handler that registers again and again costs the agent, and its log, no more than this.
// Registrations beyond it wait. All handlers of a node register after the agent has started.
const (
	registrationRate  = 20 // per second
	registrationBurst = 200
)

// checkInterval is how often the agent looks for its registration socket, and for endpoints to
// forget.
const checkInterval = 10 * time.Second

// Listen listens on the registration socket, and replaces a stale one. The socket
// accepts connections as soon as it appears, so a handler that sees it can register
// at once.
func Listen(dir string) (net.Listener, error) {
	path, unready := filepath.Join(dir, protocol.RegistrationSocket), filepath.Join(dir, ".agent.sock")
	if err := os.Remove(unready); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove the registration socket of an earlier agent: %w", err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: unready, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf(
			"create the registration socket: %w: make the directory writable, or set another one with --discovery-handlers-dir", err)
	}
	// The file stays when the agent exits: handlers watch for a new one, and the
	// next agent may already have created it.
	listener.SetUnlinkOnClose(false)
	if err := os.Rename(unready, path); err != nil {
		listener.Close()
		return nil, fmt.Errorf("create the registration socket: %w", err)
	}
	return listener, nil
}

// Serve answers registrations until ctx is done. It creates the socket again if somebody
// has removed it, and returns an error if that is not possible: if the host has deleted
// the directory, and it is mounted by itself, only a new container reaches the next one.
func (r *Registry) Serve(ctx context.Context, listener net.Listener) error {
	server := grpc.NewServer(grpc.WaitForHandlers(true), grpc.ReadBufferSize(bufferBytes), grpc.WriteBufferSize(bufferBytes))
	protocol.RegisterRegistrationServer(server, newRegistrationService(r))
	stopped := context.AfterFunc(ctx, server.Stop)
	defer stopped()
	for {
		removed, err := r.serveUntilRemoved(ctx, server, listener)
		switch {
		case ctx.Err() != nil:
			return nil
		case !removed:
			return fmt.Errorf("serve the registration socket: %w", err)
		}
		if listener, err = Listen(r.dir); err != nil {
			return fmt.Errorf("the registration socket was removed: %w", err)
		}
		r.log.Warn("The registration socket was removed; created it again", "dir", r.dir)
	}
}

// serveUntilRemoved serves a listener until ctx is done, or until its socket has been
// removed, which it reports.
func (r *Registry) serveUntilRemoved(ctx context.Context, server *grpc.Server, listener net.Listener) (removed bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	var checking sync.WaitGroup
	checking.Go(func() {
		if removed = r.awaitRemoval(ctx); removed {
			listener.Close()
		}
	})
	err = server.Serve(listener)
	cancel()
	checking.Wait()
	return removed, err
}

// awaitRemoval reports whether the registration socket was removed before ctx was done.
func (r *Registry) awaitRemoval(ctx context.Context) bool {
	for backoff.Sleep(ctx, r.interval) {
		if _, err := os.Lstat(filepath.Join(r.dir, protocol.RegistrationSocket)); errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

type registrationService struct {
	protocol.UnimplementedRegistrationServer

	registry *Registry
	pace     *rate.Limiter
}

func newRegistrationService(r *Registry) *registrationService {
	return &registrationService{registry: r, pace: rate.NewLimiter(registrationRate, registrationBurst)}
}

// RegisterDiscoveryHandler implements the Registration service.
func (s *registrationService) RegisterDiscoveryHandler(
	ctx context.Context, request *protocol.RegisterDiscoveryHandlerRequest,
) (*protocol.Empty, error) {
	if err := s.pace.Wait(ctx); err != nil {
		return nil, status.Error(codes.ResourceExhausted, "too many registrations: try again in a few seconds")
	}
	entry := Entry{Shared: request.GetShared()}
	var err error
	switch kind := request.GetEndpointType(); kind {
	case protocol.RegisterDiscoveryHandlerRequest_UDS:
		entry.Endpoint, err = unixEndpoint(request.GetName(), request.GetEndpoint())
	case protocol.RegisterDiscoveryHandlerRequest_NETWORK:
		entry.Endpoint, err = networkEndpoint(request.GetName(), request.GetEndpoint())
		if err == nil && strings.HasPrefix(request.GetEndpoint(), "https:") && s.registry.network.CAFile == "" {
			err = fmt.Errorf("endpoint %q: run the agents with --network-handlers-ca-file to use TLS", request.GetEndpoint())
		}
	default:
		err = fmt.Errorf("endpoint_type %d: want UDS (0) or NETWORK (1)", kind)
	}
	if err != nil {
		s.registry.refuse(request.GetName(), err, time.Now())
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if err := s.registry.Register(entry); err != nil {
		s.registry.refuse(request.GetName(), err, time.Now())
		code := codes.PermissionDenied
		if errors.Is(err, errTooMany) {
			code = codes.ResourceExhausted
		}
		return nil, status.Error(code, err.Error())
	}
	return &protocol.Empty{}, nil
}
