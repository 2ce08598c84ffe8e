package registry

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
)

func TestParseStatic(t *testing.T) {
	static := func(name, address string, isShared bool) Entry {
		return Entry{Endpoint: Endpoint{Name: name, Network: true, Address: address}, Shared: isShared}
	}
	for text, want := range map[string]Entry{
		"onvif=akri-onvif.akri-system.svc:10000":        static("onvif", "akri-onvif.akri-system.svc:10000", false),
		"onvif=akri-onvif.akri-system.svc:10000+shared": static("onvif", "akri-onvif.akri-system.svc:10000", true),
		"a=[fd00::1]:1+shared":                          static("a", "[fd00::1]:1", true),
		"onvif":                                         {},
		"onvif=":                                        {},
		"=host:1":                                       {},
		"onvif=host":                                    {},
		"onvif=:10000":                                  {},
		"onvif=http://host:1/path":                      {},
	} {
		got, err := ParseStatic(text)
		if got != want || (err == nil) != (want != Entry{}) {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
		if err != nil && !strings.Contains(err.Error(), "want NAME=HOST:PORT") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestStaticHandlersNeedPermission(t *testing.T) {
	some := []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}
	for name, tc := range map[string]struct {
		network Network
		address string
		refused string
	}{
		"by default":      {Network{}, "name:1", "set --allow-network-handlers=CIDR or --network-handlers-ca-file, too"},
		"an address":      {Network{Addresses: some}, "10.96.0.1:1", ""},
		"another address": {Network{Addresses: some}, "10.0.0.1:1", "not permitted"},
		"a name":          {Network{Addresses: some}, "name:1", ""}, // what it resolves to is checked later
		"certificates":    {Network{CAFile: "ca"}, "name:1", ""},
	} {
		err := tc.network.PermitStatic(Endpoint{Name: "onvif", Network: true, Address: tc.address})
		if (err == nil) != (tc.refused == "") || err != nil && !strings.Contains(err.Error(), tc.refused) {
			t.Errorf("%s: got %v, want %q", name, err, tc.refused)
		}
	}
}

// TestAStaticHandlerIsKnown checks that a handler needs no registration, and is neither
// forgotten nor stored.
func TestAStaticHandlerIsKnown(t *testing.T) {
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	endpoint := Endpoint{Name: "onvif", Network: true, Address: "10.0.0.7:1"}
	r := New(dir, anywhere, log, Entry{Endpoint: endpoint, Shared: true})
	known := func() bool {
		entries := r.Endpoints("onvif")
		return len(entries) == 1 && entries[0] == Entry{Endpoint: endpoint, Shared: true}
	}
	if !known() || !r.Has("onvif") {
		t.Errorf("the endpoints are %+v", r.Snapshot())
	}
	r.Failed(endpoint)
	r.forget(time.Now().Add(100 * ForgetAfter))
	if !known() {
		t.Errorf("forgotten when offline: %+v", r.Snapshot())
	}
	// A registration of the same endpoint changes nothing.
	if err := r.Register(Entry{Endpoint: endpoint, Shared: false}); err != nil || !known() {
		t.Errorf("%v: %+v", err, r.Snapshot())
	}
	if err := r.Register(Entry{Endpoint: Endpoint{Name: "udev", Address: "/a"}}); err != nil {
		t.Fatal(err)
	}
	if after := New(dir, anywhere, log).Endpoints("onvif"); len(after) != 0 {
		t.Errorf("an agent without the flag knows %+v", after)
	}
}

func TestAStaticHandlerComesBack(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	known := &record{static: true}
	known.failed(at(0))
	if !known.idle() {
		t.Error("an offline static endpoint is not probed")
	}
	if known.reachable(at(5)); known.state() != Offline {
		t.Error("a probe says more than a stream that has just failed")
	}
	if known.reachable(at(60)); known.state() != Waiting {
		t.Error("a probe does not find the endpoint back")
	}
	if known.opened(); known.idle() {
		t.Error("an endpoint with a stream is probed")
	}
}

// TestNamesResolveToPermittedAddresses checks that a name leads nowhere else.
func TestNamesResolveToPermittedAddresses(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(listen(t, grpc.NewServer(grpc.WaitForHandlers(true)), listener))
	if err != nil {
		t.Fatal(err)
	}
	endpoint := Endpoint{Name: "onvif", Network: true, Address: "localhost:" + port}
	for prefix, refused := range map[string]bool{"127.0.0.0/8": false, "10.0.0.0/8": true} {
		network := Network{Addresses: []netip.Prefix{netip.MustParsePrefix(prefix)}}
		if err := network.PermitStatic(endpoint); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		connection, err := New(t.TempDir(), network, slog.New(slog.DiscardHandler), Entry{Endpoint: endpoint}).Connect(ctx, endpoint)
		cancel()
		if err == nil {
			connection.Close()
		}
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "is not permitted: add its range") {
			t.Errorf("%s: got %v, refused: %v", prefix, err, refused)
		}
	}
}
