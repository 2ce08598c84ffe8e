package opcua

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"akri.sh/akri/discovery/opcua/details"
	"akri.sh/akri/discovery/opcua/uatcp"
)

func asked(t testing.TB, text, address string) origin {
	t.Helper()
	url, err := details.ParseURL(text)
	if err != nil {
		t.Fatal(err)
	}
	answering := netip.MustParseAddr(address)
	return origin{
		candidate: candidate{text, url}, address: answering, asked: withPort([]netip.Addr{answering}, url.Port),
		isOnLink: netip.MustParsePrefix("10.0.1.0/24").Contains,
	}
}

// TestIdentifyingURL checks the URL that identifies a server that another one reports.
func TestIdentifyingURL(t *testing.T) {
	for name, tc := range map[string]struct {
		asked, address, urls string
		isMissing            bool
		want                 string
	}{
		"itself":              {"opc.tcp://10.0.0.5:4840/", "10.0.0.5", "opc.tcp://10.0.0.5:4840/", false, "opc.tcp://10.0.0.5:4840/"},
		"a name":              {"opc.tcp://10.0.0.5:4840/", "10.0.0.5", "opc.tcp://plc:4840", false, "opc.tcp://plc:4840"},
		"https first":         {"opc.tcp://10.0.0.5:4840", "10.0.0.5", "https://plc opc.tcp://plc:1", false, "opc.tcp://plc:1"},
		"text stays as it is": {"opc.tcp://10.0.0.5:4840", "10.0.0.5", "opc.tcp://PLC:4840/A//b/", false, "opc.tcp://PLC:4840/A//b/"},
		"a missing name":      {"opc.tcp://10.0.0.5:4840/", "10.0.0.5", "opc.tcp://plc:4840/UA", true, "opc.tcp://10.0.0.5:4840/UA"},
		"without slash":       {"opc.tcp://10.0.0.5:4840", "10.0.0.5", "opc.tcp://plc:4840/UA", true, "opc.tcp://10.0.0.5:4840/UA"},
		"without path":        {"opc.tcp://10.0.0.5:4840/", "10.0.0.5", "opc.tcp://plc:4840", true, "opc.tcp://10.0.0.5:4840/"},
		"another port":        {"opc.tcp://10.0.0.5:4840/", "10.0.0.5", "opc.tcp://plc:4855/UA", true, "opc.tcp://10.0.0.5:4855/UA"},
		"a path was asked":    {"opc.tcp://10.0.0.5:4840/lds", "10.0.0.5", "opc.tcp://plc:4840/UA", true, "opc.tcp://10.0.0.5:4840/UA"},
		"loopback elsewhere":  {"opc.tcp://lds:4840/", "10.0.0.5", "opc.tcp://localhost:4855/UA", false, "opc.tcp://lds:4855/UA"},
		"127.0.0.1 elsewhere": {"opc.tcp://lds:4840/", "10.0.0.5", "opc.tcp://127.0.0.1:4855", false, "opc.tcp://lds:4855"},
		"unspecified":         {"opc.tcp://lds:4840/", "10.0.0.5", "opc.tcp://0.0.0.0:4855", false, "opc.tcp://lds:4855"},
		"IPv6":                {"opc.tcp://[fd00::5]:4840/", "fd00::5", "opc.tcp://[::1]:4855", false, "opc.tcp://[fd00::5]:4855"},
		"loopback here":       {"opc.tcp://localhost:4840/", "127.0.0.1", "opc.tcp://localhost:4855", false, "opc.tcp://localhost:4855"},
		"not only loopback":   {"opc.tcp://lds:4840/", "10.0.0.5", "opc.tcp://localhost:1 opc.tcp://plc:1", false, "opc.tcp://plc:1"},
		"only https":          {"opc.tcp://lds:4840/", "10.0.0.5", "https://plc", false, ""},
		"not a URL":           {"opc.tcp://lds:4840/", "10.0.0.5", "opc.tcp://p;lc:1", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			from := asked(t, tc.asked, tc.address)
			chosen, _, ok := from.choose(candidates(strings.Split(tc.urls, " ")))
			if ok && (tc.isMissing || from.isElsewhere(chosen.url.Host)) {
				chosen = from.relocate(chosen.url)
			}
			if chosen.text != tc.want {
				t.Errorf("got %q, want %q", chosen.text, tc.want)
			}
			if parsed, err := details.ParseURL(chosen.text); ok && (err != nil || parsed != chosen.url) {
				t.Errorf("%+v has another URL: %v", chosen, err)
			}
		})
	}
}

// TestItself checks the id and the URL of a server that answers at a URL of the Configuration.
// DNS knows the name oven.
func TestItself(t *testing.T) {
	const plain, slash = "opc.tcp://10.0.0.5:4840", "opc.tcp://10.0.0.5:4840/"
	search := newSearch(New(Options{Resolver: fakeResolver{"oven": "10.0.0.5"}}), parse(t, "opcuaDiscoveryMethod: {standard: {}}"))
	for name, tc := range map[string]struct {
		asked, urls, id string
		url             string // if it differs
	}{
		"no URL":                 {slash, "", slash, ""},
		"another scheme":         {"opc.tcp://plc:4840", "opc.wss://plc:443 http://plc", "opc.tcp://plc:4840", ""},
		"the same":               {slash, plain, plain, ""},
		"the same with a path":   {slash, "opc.tcp://10.0.0.5:4840/UA", "opc.tcp://10.0.0.5:4840/UA", ""},
		"the second":             {plain, "opc.tcp://10.9.0.5:4840 opc.tcp://10.0.0.5:4840", plain, ""},
		"an address of it":       {"opc.tcp://plc:4840/", plain, plain, ""},
		"a name, as in Akri":     {plain, "opc.tcp://oven:4840/UA", "opc.tcp://oven:4840/UA", "opc.tcp://10.0.0.5:4840/UA"},
		"its name":               {"opc.tcp://oven:4840", "opc.tcp://OVEN:4840/UA", "opc.tcp://OVEN:4840/UA", ""},
		"another name":           {"opc.tcp://plc:4840", "opc.tcp://oven:4840", "opc.tcp://oven:4840", "opc.tcp://plc:4840"},
		"a name and a port":      {"opc.tcp://10.0.0.5:14840", "opc.tcp://oven", "opc.tcp://oven", "opc.tcp://10.0.0.5:14840"},
		"a name that is missing": {plain, "opc.tcp://press:4840/UA", "opc.tcp://10.0.0.5:4840/UA", ""},
		"a container":            {plain, "opc.tcp://172.18.0.3:4840/", slash, ""},
		"a forwarded port":       {"opc.tcp://10.0.0.5:14840/", plain, "opc.tcp://10.0.0.5:14840/", ""},
		"any address":            {slash, "opc.tcp://[::]:4840/", slash, ""},
		"without brackets":       {slash, "opc.tcp://fd00::4:5:6:4840", slash, ""},
		"port 0":                 {plain, "opc.tcp://10.0.0.5:0", plain, ""},
		"the path was written":   {"opc.tcp://10.0.0.5:4840/line/1", "opc.tcp://press:4840/x", "opc.tcp://10.0.0.5:4840/line/1", ""},
		"loopback, with a name":  {"opc.tcp://127.0.0.1:4840", "opc.tcp://oven:4840/UA", "opc.tcp://oven:4840/UA", ""},
		"loopback, on a link":    {"opc.tcp://127.0.0.1:4840", "opc.tcp://10.0.1.7:4840", "opc.tcp://10.0.1.7:4840", ""},
		"found, with a name":     {plain, "opc.tcp://oven:4840/UA", "opc.tcp://10.0.0.5:4840/UA", ""},
		"found, without a port":  {plain, "opc.tcp://10.0.0.5", plain, ""},
		"found, without a URL":   {plain, "", plain, ""},
	} {
		t.Run(name, func(t *testing.T) {
			address := "10.0.0.5"
			if strings.Contains(tc.asked, "127.0.0.1") {
				address = "127.0.0.1"
			}
			from := asked(t, tc.asked, address)
			from.self = application{uri: "urn:a", endpoints: "None/None"}
			x := &target{method: standard, candidate: from.candidate, servers: map[string]*server{}}
			if strings.HasPrefix(name, "found") {
				x.method = direct
			}
			search.report(x, from, application{uri: "urn:a", urls: candidates(strings.Fields(tc.urls))}, true)
			for _, r := range x.servers {
				search.complete(t.Context(), from, r)
				got := r.published
				url := cmp.Or(tc.url, tc.id)
				if got == nil || got.id != tc.id || got.url != url || got.endpoints == "" || got.isAsked != (tc.url == "" && address == "10.0.0.5") {
					t.Errorf("got %+v, want %s at %s", got, tc.id, url)
				}
			}
		})
	}
}

// TestDescribedLater has a server that describes itself only when it is known from a list.
func TestDescribedLater(t *testing.T) {
	search := newSearch(New(Options{Resolver: fakeResolver{"oven": "10.9.9.9"}}), parse(t, "opcuaDiscoveryMethod: {standard: {}}"))
	from := asked(t, "opc.tcp://10.0.0.5:4840", "10.0.0.5")
	x := &target{method: standard, candidate: from.candidate, servers: map[string]*server{}}
	for isSelf, want := range []string{"opc.tcp://oven:4840/UA", "opc.tcp://10.0.0.5:4840/UA"} {
		search.report(x, from, application{uri: "urn:a", urls: candidates([]string{"opc.tcp://oven:4840/UA"})}, isSelf == 1)
		for _, r := range x.servers {
			search.complete(t.Context(), from, r)
			if r.published.url != want || r.published.id != "opc.tcp://oven:4840/UA" || len(x.servers) != 1 {
				t.Errorf("got %+v of %d servers, want the URL %s", r.published, len(x.servers), want)
			}
		}
	}
}

// TestBestURL checks which URL of a server that another one reports is most likely to be
// reachable.
func TestBestURL(t *testing.T) {
	for urls, want := range map[string]string{
		"opc.tcp://10.9.0.7:1 opc.tcp://10.0.1.7:1":                       "opc.tcp://10.0.1.7:1", // in a network of the node
		"opc.tcp://10.9.0.7:1 opc.tcp://10.0.1.7:1 opc.tcp://10.0.0.5:2":  "opc.tcp://10.0.0.5:2", // the host that was asked
		"opc.tcp://10.9.0.7:1 opc.tcp://10.9.0.8:1 https://10.0.1.7:1":    "opc.tcp://10.9.0.7:1",
		"opc.tcp://localhost:1 opc.tcp://oven:1 opc.tcp://192.168.5.5:1 ": "opc.tcp://oven:1",
		"opc.tcp://localhost:1 opc.tcp://oven:1 opc.tcp://LDS:1 ":         "opc.tcp://LDS:1",
	} {
		if _, best, _ := asked(t, "opc.tcp://lds:4840", "10.0.0.5").choose(candidates(strings.Fields(urls))); best.text != want {
			t.Errorf("%s: got %s, want %s", urls, best.text, want)
		}
	}
}

// TestReachable checks what a server can make the handler connect to.
func TestReachable(t *testing.T) {
	d := parse(t, "{opcuaDiscoveryMethod: {standard: {}}, allowHosts: [10.9.0.0/16, '*.plant.example']}")
	for name, tc := range map[string]struct {
		target   string
		resolved string
		want     string
	}{
		"its own address":              {"opc.tcp://10.0.0.5:4855", "10.0.0.5", "10.0.0.5:4855"},
		"a name of its address":        {"opc.tcp://plc:4855", "10.0.0.5 10.0.0.6", "10.0.0.5:4855"},
		"another host":                 {"opc.tcp://10.0.0.6:4855", "10.0.0.6", ""},
		"the metadata service":         {"opc.tcp://169.254.169.254:80", "169.254.169.254", ""},
		"loopback":                     {"opc.tcp://localhost:4855", "127.0.0.1", ""},
		"an allowed network":           {"opc.tcp://10.9.1.1:4855", "10.9.1.1", "10.9.1.1:4855"},
		"a name in an allowed network": {"opc.tcp://x:4855", "10.9.1.1 127.0.0.1", "10.9.1.1:4855"},
		"an allowed name":              {"opc.tcp://Oven.plant.example:1", "192.0.2.1", "192.0.2.1:1"},
		"a missing name":               {"opc.tcp://x:4855", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			target, err := details.ParseURL(tc.target)
			if err != nil {
				t.Fatal(err)
			}
			var resolved []netip.Addr
			for each := range strings.FieldsSeq(tc.resolved) {
				resolved = append(resolved, netip.MustParseAddr(each))
			}
			got := reachable(asked(t, "opc.tcp://lds:4840", "10.0.0.5"), target, resolved, d.Hosts)
			if strings.Trim(fmt.Sprint(got), "[]") != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// fakeResolver answers from a table, with addresses between blanks. A name that is not in
// it does not exist.
type fakeResolver map[string]string

func (r fakeResolver) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	switch text, ok := r[host]; {
	case !ok:
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	case text == "fails":
		return nil, &net.DNSError{Err: "timeout", Name: host, IsTimeout: true}
	default:
		var found []netip.Addr
		for each := range strings.FieldsSeq(text) {
			found = append(found, netip.MustParseAddr(each))
		}
		return found, nil
	}
}

func TestNames(t *testing.T) {
	resolver := fakeResolver{"plc": "10.0.0.1"}
	s := newSearch(New(Options{Resolver: resolver}), parse(t, "opcuaDiscoveryMethod: {standard: {}}"))
	known := map[string]*name{}
	expect := func(reason, host, want string) {
		t.Helper()
		n := known[strings.ToLower(host)]
		if n == nil {
			n = &name{}
			known[strings.ToLower(host)] = n
		}
		err := s.resolve(t.Context(), n, host)
		if got := fmt.Sprint(n.addresses, n.isMissing, err == nil || n.isMissing); got != want {
			t.Errorf("%s: got %s, want %s", reason, got, want)
		}
	}
	expect("an address needs no lookup", "::ffff:10.1.1.1", "[10.1.1.1] false true")
	expect("localhost needs no lookup", "LOCALHOST.", "[127.0.0.1 ::1] false true")
	expect("a name", "PLC", "[10.0.0.1] false true")
	expect("an unknown name", "oven", "[] true true")
	resolver["plc"], resolver["oven"] = "10.0.0.2", "10.0.0.3"
	expect("another address", "plc", "[10.0.0.2] false true")
	expect("the name exists now", "oven", "[10.0.0.3] false true")
	resolver["plc"], resolver["new"] = "fails", "fails"
	expect("a failed lookup changes nothing", "plc", "[10.0.0.2] false false")
	expect("a failed lookup does not say that the name is missing", "new", "[] false false")
	delete(resolver, "plc")
	for range minMissing - 1 {
		expect("one negative answer may be a mistake", "plc", "[10.0.0.2] false false")
	}
	expect("three are not", "plc", "[] true true")
}

func TestReasons(t *testing.T) {
	for want, err := range map[string]error{
		reasonResolve: fmt.Errorf("dial: %w", &net.DNSError{}), reasonConnect: errors.New("connection refused"),
		reasonTimeout: context.DeadlineExceeded, reasonTooLarge: uatcp.ErrTooLarge, reasonMalformed: uatcp.ErrMalformed,
		reasonUnsupported: uatcp.BadServiceUnsupported, reasonRefused: uatcp.StatusCode(0x80830000),
	} {
		if got := reason(err); got != want {
			t.Errorf("%v: got %s, want %s", err, got, want)
		}
	}
}

// FuzzURLs checks that a URL of a server never makes the handler connect to another host,
// and that what is published is a URL.
func FuzzURLs(f *testing.F) {
	f.Add("opc.tcp://localhost:4855/UA", true)
	f.Add("opc.tcp://10.0.0.6:1", false)
	f.Fuzz(func(t *testing.T, url string, isMissing bool) {
		from := asked(t, "opc.tcp://10.0.0.5:4840/", "10.0.0.5")
		if itself := from.itself(candidates([]string{url})); itself.url.Host != from.url.Host || itself.url.Port != from.url.Port {
			t.Errorf("%q made a server that was asked %+v", url, itself)
		}
		chosen, _, ok := from.choose(candidates([]string{url}))
		if !ok {
			return
		}
		if isMissing || from.isElsewhere(chosen.url.Host) {
			chosen = from.relocate(chosen.url)
		}
		if _, err := details.ParseURL(chosen.text); err != nil && len(chosen.text) < 1024 {
			t.Errorf("%q became %q: %v", url, chosen.text, err)
		}
		var resolved []netip.Addr
		if addr, err := netip.ParseAddr(chosen.url.Host); err == nil {
			resolved = append(resolved, addr)
		}
		for _, each := range reachable(from, chosen.url, resolved, details.Hosts{}) {
			if each.Addr() != from.address {
				t.Errorf("%q leads to %s", url, each)
			}
		}
	})
}
