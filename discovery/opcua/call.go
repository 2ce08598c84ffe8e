package opcua

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"time"

	"akri.sh/akri/discovery/opcua/uatcp"
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

// dial connects to the first address that accepts. Each has its share of the time that is left, so
// that one that is silent does not take all of it.
func dial(ctx context.Context, addresses []netip.AddrPort) (net.Conn, error) {
	end := time.Now().Add(connectTimeout)
	var failures []error
	for i, address := range addresses {
		share := max(time.Until(end)/time.Duration(len(addresses)-i), 1) // 0 would be no limit
		connection, err := (&net.Dialer{Timeout: share}).DialContext(ctx, "tcp", address.String())
		if err == nil {
			return connection, nil
		}
		failures = append(failures, err)
	}
	return nil, errors.Join(failures...)
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
