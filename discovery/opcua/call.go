package opcua

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"akri.sh/akri/discovery/opcua/uatcp"
	"akri.sh/akri/internal/backoff"
)

// The reasons of failures in the metrics.
const (
	reasonResolve     = "resolve"
	reasonConnect     = "connect"
	reasonTimeout     = "timeout"
	reasonMalformed   = "malformed"
	reasonTooLarge    = "too_large"
	reasonUnsupported = "unsupported"
	reasonRefused     = "refused"
	reasonBrowse      = "browse"
	reasonTooMany     = "too_many_servers"
	reasonNoURL       = "no_url"
)

// call connects to one of the addresses, opens a channel to the server with the URL, and
// calls do. The time that it waits for other calls is not the server's.
func (s *search) call(ctx context.Context, addresses []netip.AddrPort, url string, do func(*uatcp.Channel, netip.Addr) error) error {
	if err := s.handler.calls.Acquire(ctx, 1); err != nil {
		return err
	}
	defer s.handler.calls.Release(1)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	connection, err := dial(ctx, addresses)
	if err != nil {
		return err
	}
	channel, err := uatcp.Open(ctx, connection, url)
	if err != nil {
		connection.Close()
		return err
	}
	defer channel.Close()
	return do(channel, netip.MustParseAddrPort(connection.RemoteAddr().String()).Addr())
}

// dial connects to the first address that accepts. It begins to try all of them in the
// first half of its time, so that one that is silent does not take the time of the next.
func dial(ctx context.Context, addresses []netip.AddrPort) (connected net.Conn, err error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	connections := make(chan net.Conn, len(addresses))
	var attempts errgroup.Group
	for i, address := range addresses {
		attempts.Go(func() error {
			backoff.Sleep(ctx, time.Duration(i)*connectTimeout/2/time.Duration(len(addresses)))
			connection, err := new(net.Dialer).DialContext(ctx, "tcp", address.String())
			if err == nil {
				connections <- connection
				cancel() // the other attempts
			}
			return err
		})
	}
	err = attempts.Wait()
	close(connections)
	for connection := range connections {
		if connected == nil {
			connected, err = connection, nil
		} else {
			connection.Close()
		}
	}
	return connected, err
}

// failed counts a failed call.
func (s *search) failed(err error) { s.handler.options.Metrics.Failed(reason(err)) }

// reason returns the reason of a failed call.
func reason(err error) string {
	var dns *net.DNSError
	var status uatcp.StatusCode
	switch {
	case errors.As(err, &dns):
		return reasonResolve
	case errors.As(err, &status):
		switch status {
		case uatcp.BadServiceUnsupported, uatcp.BadNotImplemented, uatcp.BadNotSupported, uatcp.BadUserAccessDenied:
			return reasonUnsupported
		}
		return reasonRefused
	case errors.Is(err, uatcp.ErrTooLarge):
		return reasonTooLarge
	case errors.Is(err, uatcp.ErrMalformed):
		return reasonMalformed
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return reasonTimeout
	}
	return reasonConnect
}
