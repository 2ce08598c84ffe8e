package registry

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	maxNameLength    = 253
	maxAddressLength = 512 - maxNameLength - 1 // NAME@ADDRESS fits into a Configuration's status
	connectTimeout   = 5 * time.Second
	bufferBytes      = 4 << 10 // of a connection: messages are small and connections are many
)

// Endpoint is the address of a discovery handler, and identifies it: a registration
// with the same name and address replaces the earlier one.
type Endpoint struct {
	// Name of the handler, as Configurations refer to it.
	Name string `json:"name"`
	// Network is true for HOST:PORT and false for the path of a Unix socket.
	Network bool `json:"network,omitempty"`
	// Address is HOST:PORT or the path of the socket.
	Address string `json:"address"`
}

// String returns NAME@ADDRESS.
func (e Endpoint) String() string { return e.Name + "@" + e.Address }

// Compare orders endpoints by name, then address.
func (e Endpoint) Compare(other Endpoint) int {
	return cmp.Or(cmp.Compare(e.Name, other.Name), cmp.Compare(e.Address, other.Address))
}

// unixEndpoint returns the endpoint of a registration with endpoint_type UDS.
func unixEndpoint(name, address string) (Endpoint, error) {
	path := strings.TrimPrefix(strings.TrimPrefix(address, "unix://"), "unix:")
	if !filepath.IsAbs(path) {
		return Endpoint{}, fmt.Errorf("endpoint %q: want the absolute path of a Unix socket, as seen by the agent", address)
	}
	return checked(Endpoint{Name: name, Address: path})
}

// networkEndpoint returns the endpoint of a registration with endpoint_type
// NETWORK. Handlers send it with or without the scheme, which does not matter: the
// operator decides whether connections use TLS.
func networkEndpoint(name, address string) (Endpoint, error) {
	wanted := fmt.Errorf("endpoint %q: want http://HOST:PORT or HOST:PORT", address)
	hostPort := address
	if strings.Contains(address, "://") {
		location, err := url.Parse(address)
		if err != nil || location.Scheme != "http" && location.Scheme != "https" {
			return Endpoint{}, wanted
		}
		hostPort = location.Host
	}
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil || host == "" || port == "" {
		return Endpoint{}, wanted
	}
	return checked(Endpoint{Name: name, Network: true, Address: net.JoinHostPort(host, port)})
}

// checked returns the endpoint, or an error if its name or address is invalid.
func checked(e Endpoint) (Endpoint, error) {
	switch {
	case e.Name == "":
		return Endpoint{}, errors.New("name is empty: want the name that Configurations use for the handler")
	case len(e.Name) > maxNameLength:
		return Endpoint{}, fmt.Errorf("name has %d bytes, the limit is %d", len(e.Name), maxNameLength)
	case len(e.Address) > maxAddressLength:
		return Endpoint{}, fmt.Errorf("endpoint has %d bytes, the limit is %d", len(e.Address), maxAddressLength)
	}
	return e, nil
}

// connect returns an established connection, which uses TLS if there is a
// configuration. The caller closes it.
func (e Endpoint) connect(ctx context.Context, dialer *net.Dialer, secured *tls.Config) (*grpc.ClientConn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	failures := make(chan error, 1)
	connection, err := grpc.NewClient("passthrough:///handler",
		grpc.WithTransportCredentials(insecure.NewCredentials()), // dial adds TLS, because gRPC hides its errors
		grpc.WithAuthority(e.authority()),
		grpc.WithReadBufferSize(bufferBytes),
		grpc.WithWriteBufferSize(bufferBytes),
		grpc.WithDisableServiceConfig(),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			socket, err := e.dial(ctx, dialer)
			if err == nil && secured != nil {
				socket, err = handshake(ctx, socket, secured)
			}
			if err != nil {
				select {
				case failures <- err:
				default:
				}
			}
			return socket, err
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("connect to discovery handler %s: %w", e, err)
	}
	connection.Connect()
	for state := connection.GetState(); state != connectivity.Ready; state = connection.GetState() {
		if state != connectivity.TransientFailure && connection.WaitForStateChange(ctx, state) {
			continue
		}
		connection.Close()
		select {
		case err = <-failures:
		default:
			err = cmp.Or(ctx.Err(), errors.New("the server accepts connections but does not speak gRPC"))
		}
		return nil, fmt.Errorf("connect to discovery handler %s: %w", e, err)
	}
	return connection, nil
}

// authority returns the :authority of requests. Many servers refuse the path of a
// socket.
func (e Endpoint) authority() string {
	if e.Network {
		return e.Address
	}
	return "localhost"
}

func (e Endpoint) dial(ctx context.Context, dialer *net.Dialer) (net.Conn, error) {
	if !e.Network {
		return dialer.DialContext(ctx, "unix", e.Address)
	}
	return dialer.DialContext(ctx, "tcp", e.Address)
}

// keepAlive makes TCP notice a host that vanished. Many servers refuse gRPC's own pings at
// a useful rate.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 10 * time.Second, Count: 3}

// handshake adds TLS to a connection, or closes it.
func handshake(ctx context.Context, socket net.Conn, config *tls.Config) (net.Conn, error) {
	secured := tls.Client(socket, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		socket.Close()
		return nil, err
	}
	return secured, nil
}
