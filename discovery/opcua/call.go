package opcua

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"time"

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
	connection, answering, err := dial(ctx, addresses)
	if err != nil {
		return err
	}
	channel, err := uatcp.Open(ctx, connection, url)
	if err != nil {
		connection.Close()
		return err
	}
	defer channel.Close()
	return do(channel, answering)
}

// dial connects to the first address that accepts. It begins to try all of them in the
// first half of its time, so that one that is silent does not take the time of the next.
func dial(ctx context.Context, addresses []netip.AddrPort) (connected net.Conn, to netip.Addr, err error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	attempts := make(chan func() (net.Conn, netip.Addr, error))
	for i, address := range addresses {
		go func() {
			backoff.Sleep(ctx, time.Duration(i)*connectTimeout/2/time.Duration(len(addresses)))
			connection, err := new(net.Dialer).DialContext(ctx, "tcp", address.String())
			attempts <- func() (net.Conn, netip.Addr, error) { return connection, address.Addr(), err }
		}()
	}
	var failures []error
	for range addresses {
		connection, address, err := (<-attempts)()
		switch {
		case err != nil:
			failures = append(failures, err)
		case connected == nil:
			connected, to = connection, address
			cancel() // of the other attempts
		default:
			connection.Close()
		}
	}
	if connected == nil {
		return nil, netip.Addr{}, errors.Join(failures...)
	}
	return connected, to, nil
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
