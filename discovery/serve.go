package discovery

import (
	"cmp"
	"context"
	"crypto/tls"
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
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"akri.sh/akri/discovery/protocol"
)

const (
	// DefaultDir is the default directory of the agent's and the handlers' sockets.
	DefaultDir = "/var/lib/akri"
	// DefaultPort is the default port of a handler that is reached over the network.
	DefaultPort = 10000
	// maxRequests bounds the requests that are open at the same time: an agent serves 400
	// Configurations. Those of a handler for a site count before equal ones are merged.
	maxRequests = 1000
)

// Options configure how a handler is reached.
type Options struct {
	// Shared means that several nodes see the same devices.
	Shared bool
	// Dir is the directory of the agent's and the handlers' sockets; DefaultDir if
	// empty.
	Dir string
	// Socket is the name of the handler's Unix socket in Dir; the handler's name with
	// the suffix .sock if empty. Two handlers with one name in one directory need
	// different sockets.
	Socket string
	// Host is the address of a handler that is reached over the network, as the
	// agent sees it. If empty, the handler listens on a Unix socket in Dir.
	Host string
	// Port is the port of a handler with a Host; DefaultPort if 0.
	Port int
	// TLS secures the connections of a handler with a Host; plaintext if nil. Its
	// certificate must be valid for the handler's name, and signed by the CA that the
	// agents know from --network-handlers-ca-file. To answer agents only, require
	// certificates of clients.
	TLS *tls.Config
	// Static means that the agents know the handler from their flag --static-handlers.
	// It has a Host, and does not register.
	Static bool
	// OnRegistration, if not nil, is called with true when the handler has registered,
	// or is listening if it is Static, and with false when it could not register. Calls
	// do not overlap. A handler that has not registered finds no devices for anyone:
	// use this for a readiness probe.
	OnRegistration func(registered bool)
	// Logger receives the log; slog.Default() if nil.
	Logger *slog.Logger
}

// FromEnvironment returns the options in DISCOVERY_HANDLERS_DIRECTORY and POD_IP,
// which Akri's own handlers use.
func FromEnvironment() Options {
	return Options{Dir: os.Getenv("DISCOVERY_HANDLERS_DIRECTORY"), Host: os.Getenv("POD_IP")}
}

// Serve serves a handler and keeps it registered with the agent under a name until
// ctx is done. Then it cancels all calls of Discover, waits for them and returns nil.
// An error means that the handler cannot be served. A missing agent is not an error:
// Serve waits for it.
func Serve(ctx context.Context, name string, handler Handler, options Options) error {
	if name == "" || strings.ContainsRune(name, '/') || strings.ContainsRune(name, 0) {
		return fmt.Errorf("discovery handler name %q: want a valid file name, such as debugEcho", name)
	}
	if options.Static && options.Host == "" {
		return fmt.Errorf("discovery handler %s: a static handler listens on the network: set POD_IP", name)
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
	s := &service{handler: handler, log: options.Logger.With("handler", name)}
	server := grpc.NewServer(options.server()...)
	protocol.RegisterDiscoveryHandlerServer(server, s)
	var background sync.WaitGroup
	background.Go(func() {
		<-ctx.Done()
		server.Stop() // also cancels the calls
	})
	if options.Static {
		options.OnRegistration(true)
	} else {
		background.Go(func() {
			r := registrar{
				dir: options.Dir, request: registration, inUse: s.inUse,
				report: options.OnRegistration, log: options.Logger,
			}
			r.run(ctx)
		})
	}
	options.Logger.Info("Discovery handler is listening", "handler", name, "endpoint", endpoint, "shared", options.Shared)
	err = server.Serve(listener)
	cancel()
	background.Wait()
	if err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("discovery handler %s: serve %s: %w", name, endpoint, err)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.Dir == "" {
		o.Dir = DefaultDir
	}
	if o.Port == 0 {
		o.Port = DefaultPort
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.OnRegistration == nil {
		o.OnRegistration = func(bool) {}
	}
	return o
}

// server returns the options of the gRPC server.
func (o Options) server() []grpc.ServerOption {
	all := []grpc.ServerOption{grpc.WaitForHandlers(true)}
	if o.Host != "" && o.TLS != nil {
		all = append(all, grpc.Creds(credentials.NewTLS(o.TLS)))
	}
	return all
}

// listen listens on the handler's endpoint, and returns its address for the agent.
func listen(name string, options Options) (net.Listener, string, error) {
	if options.Host != "" {
		address := net.JoinHostPort(options.Host, strconv.Itoa(options.Port))
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return nil, "", fmt.Errorf("discovery handler %s: listen on the address in POD_IP: %w", name, err)
		}
		return listener, "http://" + address, nil
	}
	path := filepath.Join(options.Dir, cmp.Or(options.Socket, name+".sock"))
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, "", fmt.Errorf("discovery handler %s: remove the socket of an earlier run: %w", name, err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, "", fmt.Errorf(
			"discovery handler %s: listen: %w: set DISCOVERY_HANDLERS_DIRECTORY to the agent's directory and make it writable", name, err)
	}
	// The file stays when the handler exits: the next one may already have created its
	// own.
	listener.SetUnlinkOnClose(false)
	return listener, path, nil
}

// service serves a Handler over gRPC.
type service struct {
	protocol.UnimplementedDiscoveryHandlerServer

	handler Handler
	log     *slog.Logger
	streams atomic.Int64
}

// inUse reports whether an agent has an open stream.
func (s *service) inUse() bool { return s.streams.Load() > 0 }

// Discover implements the DiscoveryHandler service.
func (s *service) Discover(message *protocol.DiscoverRequest, stream grpc.ServerStreamingServer[protocol.DiscoverResponse]) error {
	defer s.streams.Add(-1)
	if s.streams.Add(1) > maxRequests {
		return status.Errorf(codes.ResourceExhausted, "the handler has %d open requests, which is the limit; "+
			"delete Configurations, or run another handler with another name", maxRequests)
	}
	err := s.handler.Discover(stream.Context(), requestFrom(message), func(devices []Device) error {
		return stream.Send(responseFrom(devices))
	})
	switch invalid := (*invalidError)(nil); {
	case stream.Context().Err() != nil:
		return status.FromContextError(stream.Context().Err()).Err()
	case errors.As(err, &invalid):
		return status.Error(codes.InvalidArgument, err.Error())
	case err != nil:
		s.log.Error("Discovery failed", "err", err)
		return status.Error(codes.Unavailable, err.Error())
	}
	return nil
}
