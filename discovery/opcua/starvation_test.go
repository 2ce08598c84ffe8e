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
	"time"

	"github.com/gopcua/opcua/ua"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/internal/pool"
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

// firstList returns the IDs of the first list.
func (w *watcher) firstList() []string {
	w.t.Helper()
	select {
	case devices := <-w.lists:
		return idsOf(devices)
	case err := <-w.ended:
		w.ended <- err
		w.t.Fatalf("the handler ended: %v", err)
	case <-time.After(time.Minute):
		w.t.Fatal("no list was sent")
	}
	return nil
}

func idsOf(devices []discovery.Device) []string {
	var ids []string
	for _, device := range devices {
		ids = append(ids, device.ID)
	}
	return ids
}

// TestFirstListAsksAll checks that the first list has a server that comes after many
// silent ones: agents delete the Instances of devices that it does not have.
func TestFirstListAsksAll(t *testing.T) {
	t.Parallel()
	p := startServer(t, "Oven", nil)
	w := discover(t, Options{}, "{opcuaDiscoveryMethod: {standard: {discoveryUrls: %s}}}", quoted(append(silentURLs(t, 255), p.url)))
	if got := w.firstList(); !slices.Equal(got, []string{p.url}) {
		t.Errorf("the first list is %q, want %q", got, p.url)
	}
}

// TestRequestsDoNotStarve checks that a request with many silent servers does not take the
// time of another one.
func TestRequestsDoNotStarve(t *testing.T) {
	t.Parallel()
	p := startServer(t, "Oven", nil)
	h := New(Options{})
	address, connections := serveCounted(t, "")
	discoverWith(t, h, "{opcuaDiscoveryMethod: {standard: {discoveryUrls: %s}}, intervalSeconds: 1}", quoted(urlsAt(address, 256)))
	await(t, "connections to silent servers", func() bool { return connections.Load() >= 16 })
	for range 3 {
		w := discoverWith(t, h, oneURL, p.url)
		if got := w.firstList(); !slices.Equal(got, []string{p.url}) {
			t.Errorf("the first list is %q, want %q", got, p.url)
		}
		w.stop()
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
	if got := w.firstList(); !slices.Equal(got, []string{p.url}) {
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
	got := w.firstList()
	slices.Sort(want)
	if !slices.Equal(got, want) {
		strange := slices.DeleteFunc(slices.Clone(got), func(id string) bool { return slices.Contains(want, id) })
		t.Errorf("%d devices, want %d; %d have another URL: %.200s", len(got), count, len(strange), fmt.Sprint(strange))
	}
}

// TestInterruptedLookups checks that a look-up that has no time neither changes what is
// known nor counts as one that has failed.
func TestInterruptedLookups(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	now := time.Unix(0, 0)
	n := newNames(fakeResolver{"plc": "10.0.0.1"}, pool.New(1).Share())
	n.now = func() time.Time { return now }
	if _, _, isFinished := n.lookup(over, "plc"); isFinished {
		t.Error("a name that was not looked up is finished")
	}
	if got, _, isFinished := n.lookup(t.Context(), "plc"); !isFinished || len(got) != 1 {
		t.Errorf("the name has the addresses %v", got)
	}
	now = now.Add(2 * nameTTL)
	if got, isMissing, isFinished := n.lookup(over, "plc"); !isFinished || isMissing || len(got) != 1 {
		t.Errorf("what was known of the name became %v, missing %v, finished %v", got, isMissing, isFinished)
	}

	failed := 0
	d := &descriptions{failed: func(error) { failed++ }}
	oven := description{endpoints: "None/None"}
	asks := 0
	ask := func(ctx context.Context) (description, error) { asks++; return oven, ctx.Err() }
	if _, ok, isFinished := d.get(over, "u", ask); ok || isFinished {
		t.Error("a server that was not asked is finished")
	}
	interrupted, interrupt := context.WithCancel(t.Context())
	late := func(ctx context.Context) (description, error) { interrupt(); return ask(ctx) }
	if _, ok, isFinished := d.get(interrupted, "u", late); ok || isFinished {
		t.Error("a server that was asked, without the time to answer, is finished")
	}
	if got, ok, isFinished := d.get(t.Context(), "u", ask); !ok || !isFinished || got.endpoints != oven.endpoints {
		t.Errorf("the description is %+v, known %v, finished %v", got, ok, isFinished)
	}
	old, _ := d.known.recall("u")
	old.next = time.Time{}
	d.known.remember("u", old)
	if got, ok, isFinished := d.get(over, "u", ask); !ok || !isFinished || got.endpoints != oven.endpoints {
		t.Errorf("the known description became %+v, known %v, finished %v", got, ok, isFinished)
	}
	if failed != 0 || asks != 2 {
		t.Errorf("%d failures, want 0; %d requests, want 2", failed, asks)
	}
}

// TestForgotten checks that names and descriptions are forgotten later than applications.
func TestForgotten(t *testing.T) {
	const misses = 3
	n := newNames(fakeResolver{"plc": "10.0.0.1"}, pool.New(1).Share())
	d := &descriptions{}
	use := func() {
		n.lookup(t.Context(), "plc")
		d.get(t.Context(), "u", func(context.Context) (description, error) { return description{}, nil })
	}
	use()
	for range 2 {
		for range misses {
			n.known.prune(misses)
			d.known.prune(misses)
		}
		if len(n.known.entries) != 1 || len(d.known.entries) != 1 {
			t.Fatalf("after %d polls without a use: %d names and %d descriptions, want 1", misses, len(n.known.entries), len(d.known.entries))
		}
		use()
	}
	for range misses + 1 {
		n.known.prune(misses)
		d.known.prune(misses)
	}
	if len(n.known.entries) != 0 || len(d.known.entries) != 0 {
		t.Errorf("after %d polls without a use: %d names and %d descriptions", misses+1, len(n.known.entries), len(d.known.entries))
	}
}

// TestPollWithoutTime checks a poll whose look-ups have no time: it ends, keeps what is
// known, and adds nothing under a URL that may be wrong.
func TestPollWithoutTime(t *testing.T) {
	t.Parallel()
	var known atomic.Pointer[[]*ua.ApplicationDescription]
	named := func(name string) *ua.ApplicationDescription {
		return describe(ua.ApplicationTypeServer, name, "opc.tcp://"+name+":4855/"+name)
	}
	known.Store(&[]*ua.ApplicationDescription{named("a"), named("b")})
	lds := startServer(t, "LDS", func() []*ua.ApplicationDescription { return *known.Load() })
	d := parse(t, fmt.Sprintf("{opcuaDiscoveryMethod: {standard: {discoveryUrls: ['%s']}}, misses: 1}", lds.url))
	s := newSearch(t.Context(), New(Options{Resolver: slowResolver(0)}), d)
	poll := func(reason string, lookups time.Duration, want ...string) {
		t.Helper()
		s.poll(t.Context(), s.targets(), 0, lookups)
		var got []string
		for _, device := range devices(d, s.presence.current()) {
			got = append(got, strings.TrimPrefix(device.ID, "opc.tcp://127.0.0.1:4855/"))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: the devices are %q, want %q", reason, got, want)
		}
	}
	poll("both are known", time.Minute, "a", "b")
	known.Store(&[]*ua.ApplicationDescription{named("b"), named("c")})
	s.names.resolver = slowResolver(time.Hour)
	for range 3 {
		poll("c cannot be named", 50*time.Millisecond, "a", "b")
	}
	s.names.resolver = slowResolver(0)
	poll("c is found, and a is gone", time.Minute, "b", "c")
}
