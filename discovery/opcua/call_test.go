package opcua

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"
)

// fill makes a loopback address silent: it fills the backlog of a listener that never accepts,
// so that the kernel ignores further connections.
func fill(t *testing.T, address netip.AddrPort) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: address.Addr().As4(), Port: int(address.Port())}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		connection, err := net.DialTimeout("tcp", address.String(), 200*time.Millisecond)
		if os.IsTimeout(err) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { connection.Close() })
	}
	t.Fatalf("%s accepts all connections", address)
}

// TestSilentAddress checks that a server is found by a name that resolves to two addresses if
// the first one does not answer.
func TestSilentAddress(t *testing.T) {
	t.Parallel()
	p := startServer(t, "Oven", nil)
	silent := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), uint16(p.port))
	fill(t, silent)
	began := time.Now()
	w := discover(t, Options{Resolver: fakeResolver{"oven": "127.0.0.2 127.0.0.1"}}, oneURL, fmt.Sprintf("opc.tcp://oven:%d", p.port))
	w.UntilIDs(p.url)
	if took := time.Since(began); took > connectTimeout+firstPatience {
		t.Errorf("it took %v", took)
	}

	// If no address accepts, the call fails before the caller's deadline.
	closed := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(freePort(t)))
	ctx, cancel := context.WithTimeout(t.Context(), 2*connectTimeout)
	defer cancel()
	if _, err := dial(ctx, []netip.AddrPort{silent, closed}); err == nil || ctx.Err() != nil {
		t.Errorf("got %v before the caller's deadline: %v", err, ctx.Err())
	}
}
