package opcua

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gopcua/opcua/ua"

	"akri.sh/akri/discovery/handlertest"
)

// silentURLs returns URLs of a server that accepts connections and never answers.
func silentURLs(t testing.TB, count int) []string {
	t.Helper()
	return urlsAt(serve(t, ""), count)
}

func urlsAt(address string, count int) []string {
	var urls []string
	for i := range count {
		urls = append(urls, fmt.Sprintf("opc.tcp://%s/%d", address, i))
	}
	return urls
}

func quoted(urls []string) string { return "['" + strings.Join(urls, "', '") + "']" }

// TestFirstListAfterLostAnswer checks that the first list has a server whose first answer is
// lost.
func TestFirstListAfterLostAnswer(t *testing.T) {
	t.Parallel()
	p := &plc{port: freePort(t)}
	address := fmt.Sprintf("127.0.0.1:%d", p.port)
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	w := discover(t, Options{}, oneURL, "opc.tcp://"+address)
	connection, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	connection.Close()
	p.start(t, "Oven", nil)
	t.Cleanup(p.stop)
	if got := handlertest.IDs(w.Next()); !slices.Equal(got, []string{p.url}) {
		t.Errorf("the first list is %q, want %q", got, p.url)
	}
}

// TestRequestsDoNotStarve checks that a request with many silent servers takes neither all
// calls of the handler nor the time of another one.
func TestRequestsDoNotStarve(t *testing.T) {
	t.Parallel()
	p := startServer(t, "Oven", nil)
	h := New(Options{})
	address, connections := serveCounted(t, "")
	discoverWith(t, h, "{opcuaDiscoveryMethod: {standard: {discoveryUrls: %s}}, intervalSeconds: 1}", quoted(urlsAt(address, 256)))
	handlertest.Await(t, "connections to silent servers", func() bool { return connections.Load() >= maxRequestCalls })
	for range 3 {
		if !h.calls.TryAcquire(maxCalls - maxRequestCalls) {
			t.Fatalf("one request makes more than %d calls at a time", maxRequestCalls)
		}
		h.calls.Release(maxCalls - maxRequestCalls)
		w := discoverWith(t, h, oneURL, p.url)
		if got := handlertest.IDs(w.Next()); !slices.Equal(got, []string{p.url}) {
			t.Errorf("the first list is %q, want %q", got, p.url)
		}
		w.Stop()
	}
}

// TestNetworkFirstList checks that the first list has a server that only its own
// description makes pass the filter, although others that a discovery server lists are
// silent.
func TestNetworkFirstList(t *testing.T) {
	t.Parallel()
	p := startServer(t, "Oven", nil)
	lds := startServer(t, "LDS", nil)
	var records []*ua.ServerOnNetwork
	for i, url := range append(silentURLs(t, 255), p.url) {
		records = append(records, &ua.ServerOnNetwork{RecordID: uint32(i), ServerName: "host", DiscoveryURL: url})
	}
	lds.records.Store(&records)
	w := discover(t, Options{}, "{opcuaDiscoveryMethod: {network: {discoveryUrls: ['%s']}}, intervalSeconds: 1, "+
		"applicationNames: {action: Include, items: [Oven]}}", lds.url)
	if got := handlertest.IDs(w.Next()); !slices.Equal(got, []string{p.url}) {
		t.Errorf("the first list is %q, want %q", got, p.url)
	}
}

// slowResolver knows no name, and needs long to say so.
type slowResolver time.Duration

func (r slowResolver) LookupNetIP(ctx context.Context, _, host string) ([]netip.Addr, error) {
	select {
	case <-time.After(time.Duration(r)):
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	case <-ctx.Done():
		return nil, &net.DNSError{Err: ctx.Err().Error(), Name: host, IsTimeout: true, UnwrapErr: ctx.Err()}
	}
}

// TestSlowLookup checks that a look-up ends when its time is over.
func TestSlowLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSearch(New(Options{Resolver: slowResolver(time.Hour)}), parse(t, "opcuaDiscoveryMethod: {standard: {}}"))
		began, found := time.Now(), name{}
		if err := s.resolve(t.Context(), &found, "plc"); err == nil || found.isMissing || time.Since(began) != lookupTimeout {
			t.Errorf("after %v: got %+v, %v", time.Since(began), found, err)
		}
	})
}

// TestFirstListLooksUpAll checks that a discovery server with many servers whose names do
// not exist has all of them, with their final URLs, in the first list.
func TestFirstListLooksUpAll(t *testing.T) {
	t.Parallel()
	const count = 400
	var known []*ua.ApplicationDescription
	lds := startServer(t, "LDS", func() []*ua.ApplicationDescription { return known })
	var want []string
	for i := range count {
		name := fmt.Sprint("plc-", i)
		known = append(known, describe(ua.ApplicationTypeServer, name, fmt.Sprintf("opc.tcp://%s:%d/UA", name, 20000+i)))
		want = append(want, fmt.Sprintf("opc.tcp://127.0.0.1:%d/UA", 20000+i))
	}
	w := discover(t, Options{Resolver: slowResolver(200 * time.Millisecond)}, oneURL, lds.url)
	got := handlertest.IDs(w.Next())
	slices.Sort(want)
	if !slices.Equal(got, want) {
		strange := slices.DeleteFunc(slices.Clone(got), func(id string) bool { return slices.Contains(want, id) })
		t.Errorf("%d devices, want %d; %d have another URL: %.200s", len(got), count, len(strange), fmt.Sprint(strange))
	}
}

// TestLateLookups checks that an answer whose look-ups are unfinished keeps what is known,
// and adds nothing under a URL that may be wrong.
func TestLateLookups(t *testing.T) {
	t.Parallel()
	var known atomic.Pointer[[]*ua.ApplicationDescription]
	named := func(name string) *ua.ApplicationDescription {
		return describe(ua.ApplicationTypeServer, name, "opc.tcp://"+name+":4855/"+name)
	}
	known.Store(&[]*ua.ApplicationDescription{named("a"), named("b")})
	lds := startServer(t, "LDS", func() []*ua.ApplicationDescription { return *known.Load() })
	resolver := gate{"c": make(chan struct{})}
	w := discover(t, Options{Resolver: resolver},
		"{opcuaDiscoveryMethod: {standard: {discoveryUrls: ['%s']}}, intervalSeconds: 1, misses: 1}", lds.url)
	at := func(name string) string { return "opc.tcp://127.0.0.1:4855/" + name }
	w.UntilIDs(at("a"), at("b"))
	known.Store(&[]*ua.ApplicationDescription{named("b"), named("c")})
	resolver["c"] <- struct{}{} // its look-up has begun
	w.Quiet()
	resolver["c"] <- struct{}{}
	w.UntilIDs(at("b"), at("c"))
}

// gate is a resolver that knows no names. The look-up of a name that has a channel receives from
// it twice: when the look-up begins, and before it ends.
type gate map[string]chan struct{}

func (g gate) LookupNetIP(ctx context.Context, _, host string) ([]netip.Addr, error) {
	if wait := g[host]; wait != nil {
		for range 2 {
			select {
			case <-wait:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}
