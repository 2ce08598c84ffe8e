package opcua

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gopcua/opcua/ua"
	"github.com/gopcua/opcua/uacp"
	"github.com/gopcua/opcua/uasc"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/handlertest"
	"akri.sh/akri/discovery/mdns/browse"
	"akri.sh/akri/discovery/monitor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// plc is a server that uses another implementation of the protocol.
type plc struct {
	url   string
	port  int
	stop  func()
	finds atomic.Int32 // calls of FindServers
	asks  atomic.Int32 // calls of GetEndpoints
	// isFaulty says that FindServers is refused.
	isFaulty atomic.Bool
	// isAloof says that it closes the connection instead of an answer to GetEndpoints.
	isAloof atomic.Bool
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

// start uses the channels of gopcua without its server, which takes a second of CPU time to
// load its nodes.
func (p *plc) start(t testing.TB, name string, applications func() []*ua.ApplicationDescription) {
	t.Helper()
	p.url = fmt.Sprintf("opc.tcp://127.0.0.1:%d", p.port)
	if applications == nil {
		itself := describe(ua.ApplicationTypeServer, name, p.url)
		applications = func() []*ua.ApplicationDescription { return []*ua.ApplicationDescription{itself} }
	}
	ctx, cancel := context.WithCancel(context.Background())
	listener, err := uacp.Listen(ctx, p.url, nil)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	var group sync.WaitGroup
	group.Go(func() {
		for ctx.Err() == nil {
			if connection, err := listener.Accept(ctx); err == nil { // it is an error if a client does not greet
				group.Go(func() { p.serve(ctx, connection, name, applications) })
			}
		}
	})
	p.stop = func() {
		cancel()
		listener.Close()
		group.Wait()
	}
}

// serve answers the requests of a connection until it ends or ctx is done.
func (p *plc) serve(ctx context.Context, connection *uacp.Conn, name string, applications func() []*ua.ApplicationDescription) {
	defer connection.Close()
	defer context.AfterFunc(ctx, func() { connection.Close() })()
	config := &uasc.Config{SecurityPolicyURI: ua.SecurityPolicyURINone, SecurityMode: ua.MessageSecurityModeNone, Lifetime: 3600_000}
	channel, err := uasc.NewServerSecureChannel(p.url, connection, config, make(chan error, 1), 1, 1, 1)
	if err != nil {
		return
	}
	for {
		message := channel.Receive(ctx)
		if message.Err != nil {
			return
		}
		var answer ua.Response
		switch r := message.Request().(type) {
		case nil: // it has opened the channel
			continue
		case *ua.FindServersRequest:
			p.finds.Add(1)
			answer = &ua.FindServersResponse{ResponseHeader: goodHeader(r), Servers: applications()}
			if p.isFaulty.Load() {
				fault := goodHeader(r)
				fault.ServiceResult = ua.StatusBadServiceUnsupported
				answer = &ua.ServiceFault{ResponseHeader: fault}
			}
		case *ua.FindServersOnNetworkRequest:
			network := &ua.FindServersOnNetworkResponse{ResponseHeader: goodHeader(r)}
			if records := p.records.Load(); records != nil {
				network.Servers = *records
			}
			answer = network
		case *ua.GetEndpointsRequest:
			if p.asks.Add(1); p.isAloof.Load() {
				return
			}
			answer = &ua.GetEndpointsResponse{ResponseHeader: goodHeader(r), Endpoints: p.endpoints(name, r.EndpointURL)}
		default:
			return // it closes the channel
		}
		if channel.SendResponseWithContext(ctx, message.RequestID, answer) != nil {
			return
		}
	}
}

// endpoints returns the endpoints for a URL. Like gopcua's server, it has some only for the
// exact URL that it knows.
func (p *plc) endpoints(name, url string) []*ua.EndpointDescription {
	if !strings.EqualFold(url, p.url) {
		return nil
	}
	return []*ua.EndpointDescription{{
		EndpointURL: p.url, Server: describe(ua.ApplicationTypeServer, name, p.url), ServerCertificate: make([]byte, 1500),
		SecurityMode: ua.MessageSecurityModeNone, SecurityPolicyURI: ua.SecurityPolicyURINone,
	}}
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
		ApplicationURI: "urn:" + name, ProductURI: "urn:product", ApplicationType: kind, DiscoveryURLs: urls,
		ApplicationName: &ua.LocalizedText{EncodingMask: ua.LocalizedTextText, Text: name},
	}
}

// discover runs a handler until the test ends.
func discover(t testing.TB, options Options, format string, arguments ...any) *handlertest.Call {
	t.Helper()
	if options.Metrics == nil {
		options.Metrics = monitor.New(prometheus.NewRegistry())
	}
	return discoverWith(t, New(options), format, arguments...)
}

// discoverWith runs another request of a handler.
func discoverWith(t testing.TB, h *Handler, format string, arguments ...any) *handlertest.Call {
	t.Helper()
	return handlertest.Open(t, h, discovery.Request{Details: fmt.Sprintf(format, arguments...)})
}

// fakeBrowser announces the lists that it receives.
type fakeBrowser chan []browse.Service

func (b fakeBrowser) Browse(ctx context.Context, query browse.Query, changed func([]browse.Service) error) error {
	if !slices.Equal(query.Types, []string{"_opcua-tcp._tcp"}) {
		return fmt.Errorf("%q was browsed", query.Types)
	}
	for {
		select {
		case services := <-b:
			if err := changed(services); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
