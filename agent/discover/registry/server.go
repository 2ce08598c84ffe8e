package registry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"akri.sh/akri/discovery/protocol"
)

// Socket is the name of the agent's socket in the directory of the handlers.
const Socket = "agent-registration.sock"

// Listen opens the socket at which handlers register, in place of one that an
// earlier agent left. It appears ready for connections, so a handler that sees
// it made can register at once.
func Listen(directory string) (net.Listener, error) {
	path, unready := filepath.Join(directory, Socket), filepath.Join(directory, ".agent.sock")
	if err := os.Remove(unready); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("registration socket: %w", err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: unready, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("registration socket: %w (the directory of the discovery handlers must exist and be writable; --discovery-handlers-dir names another)", err)
	}
	// The file stays when we end: handlers watch for a new one, and a next
	// agent may have made it already.
	listener.SetUnlinkOnClose(false)
	if err := os.Rename(unready, path); err != nil {
		listener.Close()
		return nil, fmt.Errorf("registration socket: %w", err)
	}
	return listener, nil
}

// Serve takes registrations until ctx ends.
func (r *Registry) Serve(ctx context.Context, listener net.Listener) error {
	server := grpc.NewServer(grpc.WaitForHandlers(true), grpc.ReadBufferSize(bufferBytes), grpc.WriteBufferSize(bufferBytes))
	protocol.RegisterRegistrationServer(server, &service{registry: r})
	stopped := context.AfterFunc(ctx, server.Stop)
	defer stopped()
	if err := server.Serve(listener); err != nil && ctx.Err() == nil {
		return fmt.Errorf("registration socket: %w", err)
	}
	return nil
}

type service struct {
	protocol.UnimplementedRegistrationServer

	registry *Registry
}

// RegisterDiscoveryHandler implements the protocol.
func (s *service) RegisterDiscoveryHandler(_ context.Context, request *protocol.RegisterDiscoveryHandlerRequest) (*protocol.Empty, error) {
	entry := Entry{Shared: request.GetShared()}
	var err error
	switch kind := request.GetEndpointType(); kind {
	case protocol.RegisterDiscoveryHandlerRequest_UDS:
		entry.Endpoint, err = unixEndpoint(request.GetName(), request.GetEndpoint())
	case protocol.RegisterDiscoveryHandlerRequest_NETWORK:
		entry.Endpoint, err = networkEndpoint(request.GetName(), request.GetEndpoint())
	default:
		err = fmt.Errorf("endpoint_type %d: want UDS (0) or NETWORK (1)", kind)
	}
	if err != nil {
		s.registry.log.Warn("refused the registration of a discovery handler", "handler", request.GetName(), "err", err)
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if err := s.registry.Register(entry); err != nil {
		s.registry.log.Warn("refused the registration of a discovery handler", "handler", request.GetName(), "err", err)
		return nil, status.Error(codes.ResourceExhausted, err.Error())
	}
	return &protocol.Empty{}, nil
}
