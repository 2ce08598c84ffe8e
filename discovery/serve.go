package discovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"akri.sh/akri/discovery/protocol"
)

const (
	// DefaultDirectory is where agents and handlers meet if nothing else is
	// said.
	DefaultDirectory = "/var/lib/akri"
	// DefaultPort is where a handler listens that is reached over the network.
	DefaultPort = 10000
)

// Options say how a handler is reached.
type Options struct {
	// Shared tells whether several nodes see the same devices.
	Shared bool
	// Directory holds the sockets of the agent and of the handlers;
	// DefaultDirectory if empty.
	Directory string
	// Host is the address of a handler that is reached over the network, as
	// the agent sees it. If empty, the handler listens on a unix socket in
	// Directory.
	Host string
	// Port is where a handler with a Host listens; DefaultPort if 0.
	Port int
	// Logger takes what happens to the registration; slog.Default() if nil.
	Logger *slog.Logger
}

// FromEnvironment takes the options that Akri's handlers take, from
// DISCOVERY_HANDLERS_DIRECTORY and POD_IP.
func FromEnvironment() Options {
	return Options{Directory: os.Getenv("DISCOVERY_HANDLERS_DIRECTORY"), Host: os.Getenv("POD_IP")}
}

// Serve serves a handler and keeps it registered with the agent under a name,
// until ctx ends; then it ends all calls of Discover, waits for them and
// returns nil. An error means that the handler could not be served at all: that
// no agent is there is none, Serve waits for it.
func Serve(ctx context.Context, name string, handler Handler, options Options) error {
	if name == "" || strings.ContainsRune(name, '/') || strings.ContainsRune(name, 0) {
		return fmt.Errorf("discovery handler name %q: want a name that can be that of a file, such as debugEcho", name)
	}
	options = options.withDefaults()
	listener, endpoint, err := listen(name, options)
	if err != nil {
		return err
	}
	registration := &protocol.RegisterDiscoveryHandlerRequest{Name: name, Endpoint: endpoint, Shared: options.Shared}
	if options.Host != "" {
		registration.EndpointType = protocol.RegisterDiscoveryHandlerRequest_NETWORK
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	service := &service{handler: handler, log: options.Logger}
	server := grpc.NewServer(grpc.WaitForHandlers(true))
	protocol.RegisterDiscoveryHandlerServer(server, service)
	var background sync.WaitGroup
	background.Go(func() {
		<-ctx.Done()
		server.Stop() // ends the calls too
	})
	background.Go(func() {
		registrar := registrar{directory: options.Directory, request: registration, inUse: service.inUse, log: options.Logger}
		registrar.run(ctx)
	})
	options.Logger.Info("discovery handler is listening", "handler", name, "endpoint", endpoint, "shared", options.Shared)
	err = server.Serve(listener)
	cancel()
	background.Wait()
	if err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("discovery handler %s: serve %s: %w", name, endpoint, err)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.Directory == "" {
		o.Directory = DefaultDirectory
	}
	if o.Port == 0 {
		o.Port = DefaultPort
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

// listen opens the handler's endpoint and says what the agent shall call it.
func listen(name string, options Options) (net.Listener, string, error) {
	if options.Host != "" {
		address := net.JoinHostPort(options.Host, strconv.Itoa(options.Port))
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return nil, "", fmt.Errorf("discovery handler %s: listen at POD_IP: %w", name, err)
		}
		return listener, "http://" + address, nil
	}
	path := filepath.Join(options.Directory, name+".sock")
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, "", fmt.Errorf("discovery handler %s: remove the socket of an earlier run: %w", name, err)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, "", fmt.Errorf("discovery handler %s: listen in DISCOVERY_HANDLERS_DIRECTORY (it must exist, be writable, and be the agent's): %w", name, err)
	}
	return listener, path, nil
}

// service is the protocol's side of a Handler.
type service struct {
	protocol.UnimplementedDiscoveryHandlerServer

	handler Handler
	log     *slog.Logger
	streams atomic.Int64
}

// inUse tells whether an agent is listening.
func (s *service) inUse() bool { return s.streams.Load() > 0 }

// Discover implements the protocol.
func (s *service) Discover(message *protocol.DiscoverRequest, stream grpc.ServerStreamingServer[protocol.DiscoverResponse]) error {
	s.streams.Add(1)
	defer s.streams.Add(-1)
	err := s.handler.Discover(stream.Context(), requestFrom(message), func(devices []Device) error {
		return stream.Send(responseFrom(devices))
	})
	switch invalid := (*invalidError)(nil); {
	case stream.Context().Err() != nil:
		return status.FromContextError(stream.Context().Err()).Err()
	case errors.As(err, &invalid):
		return status.Error(codes.InvalidArgument, err.Error())
	case err != nil:
		s.log.Error("discovery failed", "err", err)
		return status.Error(codes.Unavailable, err.Error())
	}
	return nil
}
