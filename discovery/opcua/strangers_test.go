package opcua

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gopcua/opcua/ua"
	"github.com/prometheus/client_golang/prometheus"

	"akri.sh/akri/discovery/handlertest"
	"akri.sh/akri/discovery/monitor"
)

// TestNoList has servers that do not say which servers they know.
func TestNoList(t *testing.T) {
	t.Parallel()
	p := startServer(t, "Oven", nil)
	p.isFaulty.Store(true)
	discover(t, Options{}, oneURL, p.url).UntilIDs(p.url)
	empty := startServer(t, "Oven", func() []*ua.ApplicationDescription { return nil })
	discover(t, Options{}, oneURL, empty.url).UntilIDs(empty.url)

	// Without a description, it is not known what has answered.
	lds := startServer(t, "LDS", func() []*ua.ApplicationDescription { return nil })
	lds.isFaulty.Store(true)
	lds.url = "opc.tcp://elsewhere:4840" // so that there are no endpoints
	registry := prometheus.NewRegistry()
	discover(t, Options{Metrics: monitor.New(registry)}, "{opcuaDiscoveryMethod: {standard: {discoveryUrls: ['opc.tcp://127.0.0.1:%d']}}, "+
		"misses: 100}", lds.port).UntilIDs() // at once: asking again does not help
	if handlertest.Failures(t, registry)[reasonUnsupported] == 0 {
		t.Error("no reason is counted")
	}
}

// TestNoEndpoints has a discovery server that lists others, and never says what it is itself.
// However rarely it is asked, its first answer counts.
func TestNoEndpoints(t *testing.T) {
	t.Parallel()
	oven := startServer(t, "Oven", nil)
	lds := startServer(t, "LDS", func() []*ua.ApplicationDescription {
		return []*ua.ApplicationDescription{describe(ua.ApplicationTypeServer, "Oven", oven.url)}
	})
	lds.isAloof.Store(true)
	w := discover(t, Options{}, "{opcuaDiscoveryMethod: {standard: {discoveryUrls: ['%s']}}, intervalSeconds: 3600, misses: 100}", lds.url)
	if got := handlertest.IDs(w.Next()); !slices.Equal(got, []string{oven.url}) {
		t.Errorf("the first list is %q, want the server", got)
	}
}

// TestOneURL has a discovery server that answers with the URL that was asked, instead of
// those of the servers.
func TestOneURL(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var known []*ua.ApplicationDescription
	lds := startServer(t, "LDS", func() []*ua.ApplicationDescription {
		mu.Lock()
		defer mu.Unlock()
		return known
	})
	mu.Lock()
	known = []*ua.ApplicationDescription{
		describe(ua.ApplicationTypeServer, "Press", lds.url), describe(ua.ApplicationTypeDiscoveryServer, "LDS", lds.url),
		describe(ua.ApplicationTypeServer, "Oven", lds.url),
	}
	mu.Unlock()
	w := discover(t, Options{}, oneURL, lds.url)
	oven, press := lds.url+"#urn:Oven", lds.url+"#urn:Press"
	for _, device := range w.UntilIDs(oven, press) {
		if device.Properties[PropertyEndpoints] != "" {
			t.Errorf("%s has the endpoints of the discovery server", device.ID)
		}
	}
	mu.Lock()
	known = known[:2]
	mu.Unlock()
	w.UntilIDs(press) // the other one keeps its id
}

// TestNoURL has a discovery server that knows one without a URL.
func TestNoURL(t *testing.T) {
	t.Parallel()
	oven := startServer(t, "Oven", nil)
	lds := startServer(t, "LDS", func() []*ua.ApplicationDescription {
		return []*ua.ApplicationDescription{
			describe(ua.ApplicationTypeServer, "Press", "https://press"), describe(ua.ApplicationTypeServer, "Oven", oven.url),
			describe(ua.ApplicationTypeClient, "SCADA"),
		}
	})
	registry := prometheus.NewRegistry()
	w := discover(t, Options{Metrics: monitor.New(registry)}, oneURL, lds.url)
	w.UntilIDs(oven.url)
	polls := lds.finds.Load()
	handlertest.Await(t, "two more polls", func() bool { return lds.finds.Load() >= polls+2 })
	if n := handlertest.Failures(t, registry)[reasonNoURL]; n != 1 {
		t.Errorf("%v were counted, want the server, once", n)
	}
}

// lateResolver does not answer until it is told to.
type lateResolver struct {
	fakeResolver
	isBack chan struct{}
}

func (r lateResolver) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	select {
	case <-r.isBack:
		return r.fakeResolver.LookupNetIP(ctx, network, host)
	default:
		return fakeResolver{host: "fails"}.LookupNetIP(ctx, network, host)
	}
}

// TestServersWaitForDNS checks that ids do not depend on whether DNS answers in the first moment
// after the handler has started. Later, servers whose names cannot be looked up are devices with
// the ids that they have if the names exist.
func TestServersWaitForDNS(t *testing.T) {
	t.Parallel()
	itself := describe(ua.ApplicationTypeServer, "Mill", "opc.tcp://mill:4840")
	mill := startServer(t, "Mill", func() []*ua.ApplicationDescription { return []*ua.ApplicationDescription{itself} })
	lds := startServer(t, "LDS", func() []*ua.ApplicationDescription {
		return []*ua.ApplicationDescription{
			describe(ua.ApplicationTypeServer, "Oven", "opc.tcp://oven:4855"),
			describe(ua.ApplicationTypeServer, "Press", "opc.tcp://press:4856/UA"),
		}
	})
	start := func() (w *handlertest.Call, back func(), counted func() (count float64, lines int)) {
		resolver := lateResolver{fakeResolver{"oven": "192.0.2.7", "mill": "192.0.2.8"}, make(chan struct{})}
		registry, log := prometheus.NewRegistry(), &lines{}
		w = discover(t, Options{Resolver: resolver, Metrics: monitor.New(registry), Log: slog.New(slog.NewTextHandler(log, nil))},
			"{opcuaDiscoveryMethod: {standard: {discoveryUrls: %s}}, intervalSeconds: 1}", quoted([]string{lds.url, mill.url}))
		return w, func() { close(resolver.isBack) }, func() (float64, int) {
			return handlertest.Failures(t, registry)[reasonResolve], log.count("DNS does not answer")
		}
	}
	right := []string{"opc.tcp://127.0.0.1:4856/UA", "opc.tcp://mill:4840", "opc.tcp://oven:4855"}
	w, back, _ := start()
	finds := lds.finds.Load()
	handlertest.Await(t, "an answer of the discovery server", func() bool { return lds.finds.Load() > finds })
	w.Quiet()
	back()
	if got := handlertest.IDs(w.Next()); !slices.Equal(got, right) {
		t.Errorf("the first list is %q, want %q", got, right)
	}
	w.Stop()

	w, back, counted := start()
	want := []string{"opc.tcp://mill:4840", "opc.tcp://oven:4855", "opc.tcp://press:4856/UA"}
	if got := handlertest.IDs(w.Next()); !slices.Equal(got, want) {
		t.Errorf("without DNS, the first list is %q, want %q", got, want)
	}
	polls, asks := lds.finds.Load(), lds.asks.Load()
	handlertest.Await(t, "three more polls", func() bool { return lds.finds.Load() >= polls+3 })
	if got := lds.asks.Load(); got != asks {
		t.Errorf("%d questions about endpoints, want %d: they rarely change", got, asks)
	}
	if count, lines := counted(); count != 3 || lines != 3 {
		t.Errorf("%v failures are counted, and %d are in the log; want one of each server", count, lines)
	}
	back()
	w.UntilIDs(right...)
}

// TestNoDNS checks what is published of servers about whose names DNS does not answer.
func TestNoDNS(t *testing.T) {
	for urls, best := range map[string]string{
		"opc.tcp://oven:1":                      "opc.tcp://oven:1",
		"opc.tcp://oven:1 opc.tcp://10.0.1.7:1": "opc.tcp://10.0.1.7:1",
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSearch(New(Options{Resolver: fakeResolver{"oven": "fails"}}), parse(t, "opcuaDiscoveryMethod: {standard: {}}"))
			r := &server{}
			from := asked(t, "opc.tcp://10.0.0.5:4840", "10.0.0.5")
			r.id, r.best, _ = from.choose(candidates(strings.Fields(urls)))
			began := time.Now()
			s.complete(t.Context(), from, r)
			if r.published == nil || r.published.id != "opc.tcp://oven:1" || r.published.url != best || time.Since(began) != firstPatience {
				t.Errorf("%s: got %+v, after %v", urls, r.published, time.Since(began))
			}
			if !r.next.IsZero() {
				t.Errorf("%s: DNS is asked again in %v", urls, time.Until(r.next))
			}
		})
	}
}
