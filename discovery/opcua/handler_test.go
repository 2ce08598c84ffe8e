package opcua

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gopcua/opcua/ua"
	"github.com/prometheus/client_golang/prometheus"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/handlertest"
	"akri.sh/akri/discovery/mdns/browse"
	"akri.sh/akri/discovery/mdns/browse/wire"
	"akri.sh/akri/discovery/monitor"
)

const oneURL = "{opcuaDiscoveryMethod: {standard: {discoveryUrls: ['%s']}}, intervalSeconds: 1}"

func TestServer(t *testing.T) {
	t.Parallel()
	p := startServer(t, "Oven", nil)
	w := discover(t, Options{}, oneURL, p.url)
	device := w.UntilIDs(p.url)[0]
	want := map[string]string{
		PropertyURL: p.url, PropertyApplicationName: "Oven", PropertyApplicationURI: "urn:Oven", PropertyProductURI: "urn:product",
		PropertyEndpoints: "None/None", discovery.DisplayName: "Oven at " + p.url,
	}
	if fmt.Sprint(device.Properties) != fmt.Sprint(want) {
		t.Errorf("the properties are %v, want %v", device.Properties, want)
	}
	polls := p.finds.Load()
	handlertest.Await(t, "two more polls", func() bool { return p.finds.Load() >= polls+2 })
	w.Quiet() // nothing changes, so nothing is sent
	if asks := p.asks.Load(); asks != 1 {
		t.Errorf("the endpoints were requested %d times, want once in a minute", asks)
	}
}

// TestForeignHosts checks that the handler connects to hosts that a discovery server
// names only if the author allows them. 127.0.0.2 stands for another host, which also is one of
// the addresses of a name.
func TestForeignHosts(t *testing.T) {
	t.Parallel()
	var connections atomic.Int32
	foreign := "opc.tcp://" + handlertest.Listen(t, "127.0.0.2:0", func(net.Conn) { connections.Add(1) })
	named := strings.Replace(foreign, "127.0.0.2", "plc", 1)
	lds := startServer(t, "LDS", func() []*ua.ApplicationDescription {
		return []*ua.ApplicationDescription{
			describe(ua.ApplicationTypeServer, "Elsewhere", foreign), describe(ua.ApplicationTypeServer, "PLC", named),
		}
	})
	options := Options{Resolver: fakeResolver{"plc": "127.0.0.2 127.0.0.1"}}
	w := discover(t, options, oneURL, lds.url)
	w.UntilIDs(foreign, named)
	polls := lds.finds.Load()
	handlertest.Await(t, "two more polls", func() bool { return lds.finds.Load() >= polls+2 })
	if n := connections.Load(); n != 0 {
		t.Errorf("%d connections to a host that is not allowed", n)
	}
	allowed := discover(t, options, "{opcuaDiscoveryMethod: {standard: {discoveryUrls: ['%s']}}, allowHosts: [127.0.0.2]}", lds.url)
	allowed.UntilIDs(foreign, named)
	if n := connections.Load(); n != 2 {
		t.Errorf("%d connections to a host that is allowed, want 2", n)
	}
}

// TestFaultyServers checks that servers that do not answer as they should neither delay
// the first list for long nor hide others.
func TestFaultyServers(t *testing.T) {
	t.Parallel()
	p := startServer(t, "Oven", nil)
	web := serve(t, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
	silent := serve(t, "")
	registry := prometheus.NewRegistry()
	metrics := monitor.New(registry)
	began := time.Now()
	w := discover(t, Options{Metrics: metrics},
		"opcuaDiscoveryMethod: {standard: {discoveryUrls: "+
			"['opc.tcp://%s', 'opc.tcp://%s', 'opc.tcp://127.0.0.1:%d', 'opc.tcp://no.invalid', '%s']}}",
		web, silent, freePort(t), p.url)
	w.UntilIDs(p.url)
	if took := time.Since(began); took > 30*time.Second { // three seconds on an idle machine
		t.Errorf("the first list took %v", took)
	}
	if got := handlertest.Failures(t, registry); got[reasonMalformed] == 0 || got[reasonConnect] == 0 {
		t.Errorf("the failures are %v, want malformed and connect among them", got)
	}
}

// TestOtherURL checks that a server that has endpoints only for the URL that it knows is
// described at other URLs too, and that a discovery server is not.
func TestOtherURL(t *testing.T) {
	t.Parallel()
	s := newSearch(New(Options{}), parse(t, "opcuaDiscoveryMethod: {standard: {}}"))
	described := func(p *plc) (application, error) {
		address := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(p.port))
		return s.describe(t.Context(), []netip.AddrPort{address}, p.url+"/UA")
	}
	if a, err := described(startServer(t, "Oven", nil)); err != nil || a.name != "Oven" || a.endpoints != "None/None" {
		t.Errorf("got %+v, %v", a, err)
	}
	lds := startServer(t, "LDS", func() []*ua.ApplicationDescription {
		return []*ua.ApplicationDescription{
			describe(ua.ApplicationTypeServer, "Oven", "opc.tcp://oven"), describe(ua.ApplicationTypeServer, "Press", "opc.tcp://press"),
		}
	})
	if a, err := described(lds); err == nil {
		t.Errorf("a discovery server is described as %+v", a)
	}
}

// serve accepts connections, and answers the first bytes with a text, or never.
func serve(t testing.TB, answer string) string {
	t.Helper()
	address, _ := serveCounted(t, answer)
	return address
}

// serveCounted is serve, and counts the connections.
func serveCounted(t testing.TB, answer string) (address string, connections *atomic.Int32) {
	t.Helper()
	connections = &atomic.Int32{}
	return handlertest.Listen(t, "127.0.0.1:0", func(connection net.Conn) {
		connections.Add(1)
		buffer := make([]byte, 4096)
		for n, err := connection.Read(buffer); err == nil; n, err = connection.Read(buffer) {
			if n > 0 && answer != "" {
				_, _ = connection.Write([]byte(answer))
			}
		}
	}), connections
}

func TestScan(t *testing.T) {
	t.Parallel()
	p := startServer(t, "Oven", nil)
	web := serve(t, "HTTP/1.1 400 Bad Request\r\n\r\n")
	_, port, _ := net.SplitHostPort(web)
	options := Options{ScanNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	w := discover(t, options, `
opcuaDiscoveryMethod: {scan: {cidrs: [127.0.0.0/29], ports: [%d, %s], connectionsPerSecond: 200}}
intervalSeconds: 1`, p.port, port)
	device := w.UntilIDs(p.url)[0]
	if device.Properties[PropertyApplicationName] != "Oven" || device.Properties[PropertyEndpoints] != "None/None" {
		t.Errorf("the properties are %v", device.Properties)
	}
	p.stop()
	w.UntilIDs()
}

func TestAnnounced(t *testing.T) {
	addr := netip.MustParseAddr
	path := func(value string) []wire.Pair { return []wire.Pair{{Key: "path", Value: value}} }
	all := announced([]browse.Service{
		{Port: 4840, TXT: path("/UA"), Addresses: []netip.Addr{addr("192.0.2.1"), addr("fd00::1"), addr("10.0.0.1")}, OnLink: 2},
		{Port: 0, Addresses: []netip.Addr{addr("10.0.0.1")}, OnLink: 1},
		{Port: 1, Addresses: []netip.Addr{addr("198.51.100.1")}},
		{Port: 1, Addresses: []netip.Addr{addr("10.0.0.2")}, TXT: path("/a b"), OnLink: 1},
		{Port: 1},
	}, 3)
	if len(all) != 2 || all[1].text != "opc.tcp://10.0.0.2:1/a%20b" {
		t.Fatalf("the targets are %+v", all)
	}
	if all[0].text != "opc.tcp://192.0.2.1:4840/UA" || len(all[0].addresses) != 2 || all[0].order != 3 {
		t.Errorf("the targets are %+v", all)
	}
	if isOnLink := onLink(); isOnLink(addr("127.0.0.1")) || isOnLink(addr("169.254.1.1")) {
		t.Error("loopback and link-local addresses are not used")
	}
}

// lines is a log.
type lines struct {
	mu  sync.Mutex
	all []string
}

// Write implements [io.Writer].
func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, string(line))
	return len(line), nil
}

// count returns how often the log has a text.
func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(strings.Join(l.all, ""), text)
}

// TestMDNS checks that a server that mDNS announces is a device while it answers, and a target
// while it answers or is announced.
func TestMDNS(t *testing.T) {
	t.Parallel()
	p := startServer(t, "Oven", nil)
	registry := prometheus.NewRegistry()
	var log lines
	s := newSearch(New(Options{Browser: make(fakeBrowser), Metrics: monitor.New(registry), Log: slog.New(slog.NewTextHandler(&log, nil))}),
		parse(t, "{opcuaDiscoveryMethod: {mdns: {}}, intervalSeconds: 1, misses: 2}"))
	ctx, cancel := context.WithCancel(t.Context())
	defer s.running.Wait()
	defer cancel()
	service := browse.Service{Port: uint16(p.port), Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}, OnLink: 1}
	announce := func() {
		s.announce(ctx, announced([]browse.Service{service}, 0))
	}
	announce()
	found := func() []string {
		all, _ := s.current()
		return handlertest.IDs(devices(s.details, all))
	}
	targets := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.targets)
	}
	handlertest.Await(t, "a device", func() bool { return slices.Equal(found(), []string{p.url}) })
	announce() // other servers have changed
	p.stop()
	handlertest.Await(t, "no device", func() bool { return len(found()) == 0 })
	polls := handlertest.Failures(t, registry)[reasonConnect]
	handlertest.Await(t, "three more polls", func() bool { return handlertest.Failures(t, registry)[reasonConnect] >= polls+3 })
	if n := log.count("does not work"); targets() != 1 || n != 1 {
		t.Errorf("%d targets; %d lines say that the server, which is announced, does not work", targets(), n)
	}
	p.start(t, "Oven", nil)
	handlertest.Await(t, "the device again", func() bool { return slices.Equal(found(), []string{p.url}) })
	s.announce(ctx, nil)
	polls = float64(p.asks.Load())
	handlertest.Await(t, "two more polls", func() bool { return float64(p.asks.Load()) >= polls+2 })
	if targets() != 1 || len(found()) != 1 {
		t.Error("a server that answers stays a device although it is not announced any longer")
	}
	p.stop()
	handlertest.Await(t, "no target", func() bool { return targets() == 0 && len(found()) == 0 })
}

func TestRefused(t *testing.T) {
	for name, tc := range map[string]struct{ details, want string }{
		"details":  {"opcuaDiscoveryMethod: {}", "no method"},
		"mDNS":     {"opcuaDiscoveryMethod: {mdns: {}}", "does not browse by mDNS"},
		"scan":     {"opcuaDiscoveryMethod: {scan: {cidrs: [10.0.0.0/24]}}", "--scan-networks=10.0.0.0/24"},
		"too wide": {"opcuaDiscoveryMethod: {scan: {cidrs: [192.0.2.0/25, 192.0.2.0/23], connectionsPerSecond: 100}}", "cidrs[1]"},
	} {
		t.Run(name, func(t *testing.T) {
			h := New(Options{ScanNetworks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}})
			err := h.Discover(t.Context(), discovery.Request{Details: tc.details}, func([]discovery.Device) error {
				t.Error("a list was sent")
				return nil
			})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}

// faultyBrowser fails once.
type faultyBrowser struct {
	fakeBrowser
	once sync.Once
}

func (b *faultyBrowser) Browse(ctx context.Context, query browse.Query, changed func([]browse.Service) error) (err error) {
	b.once.Do(func() { err = errors.New("no interfaces") })
	if err != nil {
		return err
	}
	return b.fakeBrowser.Browse(ctx, query, changed)
}

// TestFirstListOfBrowser checks that the first list waits for that of mDNS, even if browsing
// fails at first and takes longer than a server that fails. Otherwise, a handler that restarts
// would report what mDNS announces as gone.
func TestFirstListOfBrowser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		browser := make(fakeBrowser)
		w := discover(t, Options{Browser: &faultyBrowser{fakeBrowser: browser}, Resolver: fakeResolver{}},
			"{opcuaDiscoveryMethod: {mdns: {}, standard: {discoveryUrls: ['opc.tcp://plc']}}, intervalSeconds: 1, misses: 1}")
		time.Sleep(browseRetry + firstPatience + time.Second)
		synctest.Wait()
		w.Quiet() // there is no list without that of the browser
		browser <- nil
		w.UntilIDs()
	})
}

// TestFirstListIsLate checks that the first list does not wait for ever.
func TestFirstListIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := discover(t, Options{Browser: make(fakeBrowser)}, "opcuaDiscoveryMethod: {mdns: {}}")
		time.Sleep(maxFirstList - time.Second)
		synctest.Wait()
		w.Quiet()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		w.Next()
	})
}
