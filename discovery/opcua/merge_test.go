package opcua

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/opcua/details"
	"akri.sh/akri/discovery/opcua/uatcp"
)

func parse(t testing.TB, text string) *details.Details {
	t.Helper()
	d, err := details.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func at(addresses ...string) []netip.AddrPort {
	var all []netip.AddrPort
	for _, each := range addresses {
		all = append(all, netip.MustParseAddrPort(each))
	}
	return all
}

func TestDevices(t *testing.T) {
	const everything = "opcuaDiscoveryMethod: {standard: {}}"
	server := func(url, uri string, addresses ...string) application {
		return application{url: url, name: "N", uri: uri, kind: "Server", addresses: at(addresses...)}
	}
	asked := func(address string, urls ...string) application {
		a := server("opc.tcp://"+address, "urn:a", address)
		a.urls = candidates(urls)
		return a
	}
	for name, tc := range map[string]struct {
		reason       string
		details      string
		applications []application
		want         string
	}{
		"none": {"no device", everything, nil, ""},
		"two servers": {
			"they have nothing in common", everything,
			[]application{server("opc.tcp://a", "urn:a", "10.0.0.1:1"), server("opc.tcp://b", "urn:b", "10.0.0.2:1")},
			"opc.tcp://a opc.tcp://b",
		},
		"two names of one server": {
			"they have an address and the application URI in common; the first target's URL counts", everything,
			[]application{server("opc.tcp://plc:4840", "urn:a", "10.0.0.1:1"), server("opc.tcp://10.0.0.1:4840", "urn:a", "10.0.0.1:1")},
			"opc.tcp://plc:4840",
		},
		"a chain of names": {
			"the second has an address in common with both", everything,
			[]application{
				server("opc.tcp://a", "urn:a", "10.0.0.1:1"), server("opc.tcp://b", "urn:a", "10.0.0.2:1"),
				server("opc.tcp://c", "urn:a", "10.0.0.1:1", "10.0.0.2:1"),
			},
			"opc.tcp://a",
		},
		"the same URI": {
			"many servers have a default URI, so it proves nothing", everything,
			[]application{server("opc.tcp://a", "urn:default", "10.0.0.1:1"), server("opc.tcp://b", "urn:default", "10.0.0.2:1")},
			"opc.tcp://a opc.tcp://b",
		},
		"the same URI, which is the id": {
			"the author says that URIs are unique", "{opcuaDiscoveryMethod: {standard: {}}, id: applicationUri}",
			[]application{server("opc.tcp://a", "urn:a", "10.0.0.1:1"), server("opc.tcp://b", "urn:a", "10.0.0.2:1")},
			"urn:a",
		},
		"no URI, which is the id": {
			"the URL is used instead", "{opcuaDiscoveryMethod: {standard: {}}, id: applicationUri}",
			[]application{server("opc.tcp://a", ""), server("opc.tcp://b", "")},
			"opc.tcp://a opc.tcp://b",
		},
		"one URL, two applications": {
			"their URIs tell them apart", everything,
			[]application{server("opc.tcp://a", "urn:a", "10.0.0.1:1"), server("opc.tcp://a", "urn:b", "10.0.0.1:1"), server("opc.tcp://b", "")},
			"opc.tcp://a#urn:a opc.tcp://a#urn:b opc.tcp://b",
		},
		"one URL, two applications, and the first was asked": {
			"it certainly has the URL", everything,
			[]application{{url: "opc.tcp://a", uri: "urn:b", kind: "Server", isAsked: true}, server("opc.tcp://a", "urn:a")},
			"opc.tcp://a opc.tcp://a#urn:a",
		},
		"one URL, two applications, and a record": {
			"the record describes one of them", everything,
			[]application{server("opc.tcp://a", "urn:a"), server("opc.tcp://a", "urn:b"), server("opc.tcp://a", "")},
			"opc.tcp://a#urn:a opc.tcp://a#urn:b",
		},
		"two network cards": {
			"both URLs were asked, and each answer has the other one", everything,
			[]application{
				asked("10.0.0.1:1", "opc.tcp://10.0.0.2:1", "opc.tcp://10.0.0.1:1"),
				asked("10.0.0.2:1", "opc.tcp://10.0.0.2:1", "opc.tcp://10.0.0.1:1"),
			},
			"opc.tcp://10.0.0.1:1",
		},
		"two containers": {
			"an address that both report, and at which none was asked, proves nothing", everything,
			[]application{
				asked("10.0.0.1:1", "opc.tcp://172.18.0.2:1", "opc.tcp://10.0.0.1:1"),
				asked("10.0.0.2:1", "opc.tcp://172.18.0.2:1", "opc.tcp://10.0.0.2:1"),
			},
			"opc.tcp://10.0.0.1:1 opc.tcp://10.0.0.2:1",
		},
		"one address, two applications": {
			"a server may have several, at different paths", everything,
			[]application{server("opc.tcp://a/x", "urn:x", "10.0.0.1:1"), server("opc.tcp://a/y", "urn:y", "10.0.0.1:1")},
			"opc.tcp://a/x opc.tcp://a/y",
		},
		"a discovery server": {
			"it is no server by default", everything,
			[]application{
				{url: "opc.tcp://lds", kind: "DiscoveryServer"},
				{url: "opc.tcp://a", kind: "ClientAndServer"},
			},
			"opc.tcp://a",
		},
		"only discovery servers": {
			"as requested", "{opcuaDiscoveryMethod: {standard: {}}, applicationTypes: [DiscoveryServer]}",
			[]application{{url: "opc.tcp://lds", kind: "DiscoveryServer"}, {url: "opc.tcp://a", kind: "Server"}},
			"opc.tcp://lds",
		},
		"a record of a network": {
			"its type is unknown, so it passes", everything, []application{{url: "opc.tcp://a", name: "A"}}, "opc.tcp://a",
		},
		"names": {
			"exactly this name", "{opcuaDiscoveryMethod: {standard: {}}, applicationNames: {action: Include, items: [Oven]}}",
			[]application{{url: "opc.tcp://a", name: "Oven"}, {url: "opc.tcp://b", name: "oven"}, {url: "opc.tcp://c", name: "Oven 2"}},
			"opc.tcp://a",
		},
		"URIs": {
			"without these",
			"{opcuaDiscoveryMethod: {mdns: {}}, applicationUris: {action: Exclude, items: [urn:a]}, productUris: {action: Exclude, items: [p]}}",
			[]application{{url: "opc.tcp://a", uri: "urn:a"}, {url: "opc.tcp://b", uri: "urn:b", product: "p"}, {url: "opc.tcp://c"}},
			"opc.tcp://c",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for i, a := range tc.applications {
				tc.applications[i].id = a.url
			}
			for _, device := range devices(parse(t, tc.details), tc.applications) {
				got = append(got, device.ID)
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("%s\n got %s\nwant %s", tc.reason, strings.Join(got, " "), tc.want)
			}
		})
	}
}

func TestMergedProperties(t *testing.T) {
	d := parse(t, "opcuaDiscoveryMethod: {standard: {}}")
	found := devices(d, []application{
		{id: "opc.tcp://plc:4840", url: "opc.tcp://plc:4840", name: "host"}, // a record of a network
		{id: "opc.tcp://plc:4840", name: "Oven", uri: "urn:a", product: "p", kind: "Server", endpoints: "None/None"},
	})
	want := map[string]string{
		PropertyURL: "opc.tcp://plc:4840", PropertyApplicationName: "Oven", PropertyApplicationURI: "urn:a", PropertyProductURI: "p",
		PropertyEndpoints: "None/None", discovery.DisplayName: "Oven at opc.tcp://plc:4840",
	}
	if len(found) != 1 || !reflect.DeepEqual(found[0].Properties, want) {
		t.Errorf("got %+v, want one device with %v", found, want)
	}
}

func TestClean(t *testing.T) {
	for dirty, want := range map[string]string{
		"Oven":         "Oven",
		" Öfen\x00\n ": "Öfen",
		"\xff\xfe":     "",
		"a\tb":         "a b",
	} {
		if got := clean(dirty); got != want {
			t.Errorf("%q is %q, want %q", dirty, got, want)
		}
	}
}

func TestSummarize(t *testing.T) {
	const prefix = "http://opcfoundation.org/UA/SecurityPolicy#"
	endpoint := func(url, policy, mode string) uatcp.Endpoint {
		return uatcp.Endpoint{URL: url, Policy: policy, Mode: mode}
	}
	var policies []string
	for _, each := range []uatcp.Endpoint{
		endpoint("opc.tcp://a", prefix+"None", "None"),
		endpoint("opc.tcp://a", prefix+"Basic256Sha256", "SignAndEncrypt"),
		endpoint("opc.tcp://b", prefix+"None", "None"),
		endpoint("https://a", prefix+"Aes128_Sha256_RsaOaep", "Sign"),
		endpoint("opc.tcp://a", prefix+"x,y=z\n", "Sign"),
		endpoint("opc.tcp://a", "", "Sign"),
		endpoint("opc.tcp://a", strings.Repeat("x", 65), "Sign"),
	} {
		policies = appendPolicy(policies, each)
	}
	if got := summarize(policies); got != "Basic256Sha256/SignAndEncrypt,None/None" {
		t.Errorf("got %s", got)
	}
	policies = nil
	for i := range 50 {
		policies = append(policies, strings.Repeat("x", 40)+fmt.Sprint(i)+"/Sign")
	}
	if got := summarize(policies); len(got) > maxPoliciesBytes {
		t.Errorf("%d bytes", len(got))
	}
}

// same says which applications with URIs are the same.
func same(a, b application, byURI bool) bool {
	knows := func(a, b application) bool {
		return slices.ContainsFunc(a.addresses, func(each netip.AddrPort) bool {
			return slices.Contains(b.addresses, each) ||
				slices.ContainsFunc(b.urls, func(claim candidate) bool { return claim.url.Address() == each.String() })
		})
	}
	return a.uri == b.uri && (byURI || a.id == b.id || knows(a, b) || knows(b, a))
}

// TestGroupsAtRandom compares the groups with a naive computation, whatever the order of
// answers was.
func TestGroupsAtRandom(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		all := make([]application, random.IntN(9))
		for i := range all {
			all[i] = application{id: fmt.Sprint("u", random.IntN(8)), uri: []string{"urn:a", "urn:b"}[random.IntN(2)]}
			for range random.IntN(3) {
				address := netip.AddrFrom4([4]byte{10, 0, 0, byte(random.IntN(5))})
				all[i].addresses = append(all[i].addresses, netip.AddrPortFrom(address, 1))
				all[i].urls = append(all[i].urls, candidates([]string{fmt.Sprintf("opc.tcp://10.0.0.%d:1", random.IntN(9))})...)
			}
		}
		byURI := random.IntN(3) == 0
		label := make([]int, len(all)) // the first member of the group
		for i := range label {
			label[i] = i
		}
		for changed := true; changed; {
			changed = false
			for i := range all {
				for j := range all {
					if same(all[i], all[j], byURI) && label[i] > label[j] {
						label[i], changed = label[j], true
					}
				}
			}
		}
		want := map[int]int{}
		for _, l := range label {
			want[l]++
		}
		groups := group(all, byURI)
		sizes := map[int]int{}
		for i, members := range groups {
			sizes[i] = len(members)
		}
		if len(groups) != len(want) {
			t.Fatalf("seed %d: %d groups, want %d, of %+v", seed, len(groups), len(want), all)
		}
		var got, expected []int
		for _, n := range sizes {
			got = append(got, n)
		}
		for _, n := range want {
			expected = append(expected, n)
		}
		slices.Sort(got)
		slices.Sort(expected)
		if !slices.Equal(got, expected) {
			t.Fatalf("seed %d: sizes %v, want %v, of %+v", seed, got, expected, all)
		}
	}
}
