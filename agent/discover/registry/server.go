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

	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"akri.sh/akri/discovery/protocol"
)

// A handler that registers again and again costs the agent, and its log, no more than this.
// Registrations beyond it wait. All handlers of a node register after the agent has started.
const (
	registrationRate  = 20 // per second
	registrationBurst = 200
)

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

// Serve answers registrations until ctx is done.
func (r *Registry) Serve(ctx context.Context, listener net.Listener) error {
	server := grpc.NewServer(grpc.WaitForHandlers(true), grpc.ReadBufferSize(bufferBytes), grpc.WriteBufferSize(bufferBytes))
	protocol.RegisterRegistrationServer(server, newRegistrationService(r))
	stopped := context.AfterFunc(ctx, server.Stop)
	defer stopped()
	if err := server.Serve(listener); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve the registration socket: %w", err)
	}
	return nil
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
		s.registry.log.Warn("Refused the registration of a discovery handler", "handler", request.GetName(), "err", err)
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if err := s.registry.Register(entry); err != nil {
		s.registry.log.Warn("Refused the registration of a discovery handler", "handler", request.GetName(), "err", err)
		code := codes.PermissionDenied
		if errors.Is(err, errTooMany) || errors.Is(err, errTooOften) {
			code = codes.ResourceExhausted
		}
		return nil, status.Error(code, err.Error())
	}
	return &protocol.Empty{}, nil
}
