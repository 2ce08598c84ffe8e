package opcua

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gopcua/opcua/id"
	"github.com/gopcua/opcua/server"
	"github.com/gopcua/opcua/ua"
	"github.com/gopcua/opcua/uasc"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/monitor"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // the servers log there
	// A server of gopcua that is closed while it accepts a connection leaves goroutines.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/gopcua/opcua/server.(*channelBroker).RegisterConn"),
		goleak.IgnoreAnyFunction("github.com/gopcua/opcua/server.(*channelBroker).Close.func1"),
	)
}

// plc is a server of another implementation. Its answers to FindServers can be replaced.
type plc struct {
	url   string
	port  int
	stop  func()
	finds atomic.Int32 // calls of FindServers
	asks  atomic.Int32 // calls of GetEndpoints
	// records is the answer to FindServersOnNetwork.
	records atomic.Pointer[[]*ua.ServerOnNetwork]
}

// startServer starts a server on the loopback device. If applications is not nil, the
// server is a discovery server that knows them.
func startServer(t testing.TB, name string, applications func() []*ua.ApplicationDescription) *plc {
	t.Helper()
	p := &plc{port: freePort(t)}
	p.start(t, name, applications)
	t.Cleanup(func() { p.stop() })
	return p
}

func (p *plc) start(t testing.TB, name string, applications func() []*ua.ApplicationDescription) {
	t.Helper()
	s := server.New(
		server.EndPoint("127.0.0.1", p.port), server.ServerName(name),
		server.EnableSecurity("None", ua.MessageSecurityModeNone), server.EnableAuthMode(ua.UserTokenTypeAnonymous),
	)
	p.url = s.URLs()[0]
	s.RegisterHandler(id.FindServersRequest_Encoding_DefaultBinary, func(_ *uasc.SecureChannel, r ua.Request, _ uint32) (ua.Response, error) {
		p.finds.Add(1)
		answer := &ua.FindServersResponse{ResponseHeader: goodHeader(r), Servers: []*ua.ApplicationDescription{s.Endpoints()[0].Server}}
		if applications != nil {
			answer.Servers = applications()
		}
		return answer, nil
	})
	s.RegisterHandler(id.GetEndpointsRequest_Encoding_DefaultBinary, func(_ *uasc.SecureChannel, r ua.Request, _ uint32) (ua.Response, error) {
		p.asks.Add(1)
		answer := &ua.GetEndpointsResponse{ResponseHeader: goodHeader(r)}
		if strings.EqualFold(r.(*ua.GetEndpointsRequest).EndpointURL, p.url) { // as the server does
			answer.Endpoints = s.Endpoints()
		}
		return answer, nil
	})
	network := func(_ *uasc.SecureChannel, r ua.Request, _ uint32) (ua.Response, error) {
		answer := &ua.FindServersOnNetworkResponse{ResponseHeader: goodHeader(r)}
		if records := p.records.Load(); records != nil {
			answer.Servers = *records
		}
		return answer, nil
	}
	s.RegisterHandler(id.FindServersOnNetworkRequest_Encoding_DefaultBinary, network)
	// The server keeps the handlers that were registered before it starts.
	ctx, cancel := context.WithCancel(context.Background())
	if err := s.Start(ctx); err != nil {
		t.Fatal(err)
	}
	p.stop = func() {
		cancel()
		_ = s.Close() // reports that connections are closed
	}
}

func goodHeader(r ua.Request) *ua.ResponseHeader {
	return &ua.ResponseHeader{
		Timestamp: time.Now(), RequestHandle: r.Header().RequestHandle, ServiceDiagnostics: &ua.DiagnosticInfo{},
		AdditionalHeader: ua.NewExtensionObject(nil),
	}
}

func freePort(t testing.TB) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// describe returns the description of an application as a discovery server has it.
func describe(kind ua.ApplicationType, name string, urls ...string) *ua.ApplicationDescription {
	return &ua.ApplicationDescription{
		ApplicationURI: "urn:" + name, ApplicationType: kind, DiscoveryURLs: urls,
		ApplicationName: &ua.LocalizedText{EncodingMask: ua.LocalizedTextText, Text: name},
	}
}

// watcher receives the lists of a handler.
type watcher struct {
	t     testing.TB
	lists chan []discovery.Device
	ended chan error
	stop  func()
}

// discover runs a handler until the test ends.
func discover(t testing.TB, options Options, format string, arguments ...any) *watcher {
	t.Helper()
	if options.Metrics == nil {
		options.Metrics = monitor.New(prometheus.NewRegistry())
	}
	return discoverWith(t, New(options), format, arguments...)
}

// discoverWith runs another request of a handler.
func discoverWith(t testing.TB, h *Handler, format string, arguments ...any) *watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &watcher{t: t, lists: make(chan []discovery.Device, 100), ended: make(chan error, 1), stop: cancel}
	go func() {
		request := discovery.Request{Details: fmt.Sprintf(format, arguments...)}
		w.ended <- h.Discover(ctx, request, func(devices []discovery.Device) error {
			w.lists <- devices
			return nil
		})
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case <-w.ended:
		case <-time.After(20 * time.Second):
			t.Error("the handler does not end")
		}
	})
	return w
}

// expect waits for a list with exactly these IDs, and returns it.
func (w *watcher) expect(ids ...string) []discovery.Device {
	w.t.Helper()
	slices.Sort(ids)
	var got []string
	for limit := time.After(time.Minute); ; {
		select {
		case devices := <-w.lists:
			got = nil
			for _, device := range devices {
				got = append(got, device.ID)
			}
			if slices.Equal(got, ids) {
				return devices
			}
		case err := <-w.ended:
			w.ended <- err
			w.t.Fatalf("the handler ended: %v", err)
		case <-limit:
			w.t.Fatalf("the latest list is %q, want %q", got, ids)
		}
	}
}

// none checks that no other list was sent.
func (w *watcher) none() {
	w.t.Helper()
	select {
	case devices := <-w.lists:
		w.t.Errorf("a list of %d devices was sent", len(devices))
	default:
	}
}

// fakeBrowser announces the lists that it receives.
type fakeBrowser chan []Service

func (b fakeBrowser) Browse(ctx context.Context, service string, found func([]Service)) error {
	if service != "_opcua-tcp._tcp" {
		return fmt.Errorf("%s was browsed", service)
	}
	for {
		select {
		case services := <-b:
			found(services)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func loopback(port int) Service {
	return Service{Instance: "PLC", Host: "plc.local", Port: uint16(port), Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}}
}
