package details

import (
	"net/netip"
	"strings"
	"testing"

	"akri.sh/akri/discovery/handlertest"
)

func TestParse(t *testing.T) {
	handlertest.Validate(t, func(text string) error { _, err := Parse(text); return err }, map[string]handlertest.Details{
		"Akri's chart": {`
opcuaDiscoveryMethod:
  standard:
    discoveryUrls:
    - opc.tcp://localhost:4840/
applicationNames:
  action: Exclude
  items: []
`, ""},
		"Akri's default":  {"opcuaDiscoveryMethod: {standard: {}}", ""},
		"all methods":     {"opcuaDiscoveryMethod: {standard: {}, network: {}, mdns: {}, scan: {cidrs: [10.1.2.0/24]}}", ""},
		"our keys":        {"{opcuaDiscoveryMethod: {mdns: {}}, applicationUris: {action: Include, items: [a]}, id: applicationUri}", ""},
		"timing":          {"{opcuaDiscoveryMethod: {mdns: {}}, intervalSeconds: 60, misses: 1}", ""},
		"hosts":           {"{opcuaDiscoveryMethod: {mdns: {}}, allowHosts: [10.0.0.0/8, 10.1.1.1, plc, '*.plant.example', 'fd00::/8']}", ""},
		"nothing":         {"", "opcuaDiscoveryMethod: no method; set standard"},
		"no method":       {"opcuaDiscoveryMethod: {}", "opcuaDiscoveryMethod: no method"},
		"an empty method": {"opcuaDiscoveryMethod: {mdns: null}", "no method"},
		"no URLs":         {"opcuaDiscoveryMethod: {standard: {discoveryUrls: []}}", "discoveryUrls: empty"},
		"another scheme":  {"opcuaDiscoveryMethod: {standard: {discoveryUrls: ['https://plc']}}", "[0]: \"https://plc\": the scheme"},
		"a password":      {"opcuaDiscoveryMethod: {network: {discoveryUrls: ['opc.tcp://a:b@plc']}}", "network.discoveryUrls[0]"},
		"a repeated URL":  {"opcuaDiscoveryMethod: {standard: {discoveryUrls: ['opc.tcp://a', 'opc.tcp://a']}}", "discoveryUrls[1]: repeats"},
		"URLs elsewhere":  {"{opcuaDiscoveryMethod: {mdns: {}}, discoveryUrls: []}", "below opcuaDiscoveryMethod.standard"},
		"several mistakes": {"{opcuaDiscoveryMethod: {standard: {discoveryUrls: [a, b]}}, misses: 0}",
			"discoveryUrls[1]: \"b\""},
		"a type":              {"{opcuaDiscoveryMethod: {mdns: {}}, applicationTypes: [server]}", "applicationTypes[0]: unknown type \"server\""},
		"no type":             {"{opcuaDiscoveryMethod: {mdns: {}}, applicationTypes: []}", "applicationTypes: empty"},
		"an id":               {"{opcuaDiscoveryMethod: {mdns: {}}, id: uri}", "id: unknown value"},
		"an interval":         {"{opcuaDiscoveryMethod: {mdns: {}}, intervalSeconds: 0}", "intervalSeconds: 0 is out of range"},
		"misses":              {"{opcuaDiscoveryMethod: {mdns: {}}, misses: -1}", "misses: -1 is out of range"},
		"a host":              {"{opcuaDiscoveryMethod: {mdns: {}}, allowHosts: ['a b']}", "allowHosts[0]"},
		"a host with a star":  {"{opcuaDiscoveryMethod: {mdns: {}}, allowHosts: ['plc*']}", "allowHosts[0]"},
		"a scan of nothing":   {"opcuaDiscoveryMethod: {scan: {}}", "scan.cidrs: missing"},
		"not a network":       {"opcuaDiscoveryMethod: {scan: {cidrs: [10.1.2.3]}}", "scan.cidrs[0]"},
		"bits of a host":      {"opcuaDiscoveryMethod: {scan: {cidrs: [10.1.2.3/24]}}", "did you mean 10.1.2.0/24?"},
		"a large scan":        {"opcuaDiscoveryMethod: {scan: {cidrs: [10.0.0.0/8]}}", "more than 16384 addresses"},
		"a huge scan":         {"opcuaDiscoveryMethod: {scan: {cidrs: ['fd00::/8']}}", "more than 16384 addresses"},
		"many ports":          {"opcuaDiscoveryMethod: {scan: {cidrs: [10.1.0.0/18], ports: [1, 2]}}", "more than 16384 addresses"},
		"a slow scan":         {"opcuaDiscoveryMethod: {scan: {cidrs: [10.1.0.0/18]}}", "write 69 or more"},
		"a faster scan":       {"opcuaDiscoveryMethod: {scan: {cidrs: [10.1.0.0/18], connectionsPerSecond: 69}}", ""},
		"no port":             {"opcuaDiscoveryMethod: {scan: {cidrs: [10.1.2.0/24], ports: []}}", "scan.ports: empty"},
		"not a port":          {"opcuaDiscoveryMethod: {scan: {cidrs: [10.1.2.0/24], ports: [0]}}", "scan.ports[0]"},
		"the scan's interval": {"opcuaDiscoveryMethod: {scan: {cidrs: [10.1.2.0/24], intervalSeconds: 1}}", "scan.intervalSeconds"},
		"the scan's rate":     {"opcuaDiscoveryMethod: {scan: {cidrs: [10.1.2.0/24], connectionsPerSecond: 501}}", "scan.connectionsPerSecond"},
	})
}

func TestDefaults(t *testing.T) {
	d, err := Parse("opcuaDiscoveryMethod: {standard: {}, scan: {cidrs: [10.1.2.0/30]}}")
	if err != nil {
		t.Fatal(err)
	}
	if urls := d.Method.Standard.DiscoveryURLs; len(urls) != 1 || urls[0] != "opc.tcp://localhost:4840/" {
		t.Errorf("the URLs are %q", urls)
	}
	if got := strings.Join(d.ApplicationTypes, " "); got != "Server ClientAndServer" {
		t.Errorf("the types are %s", got)
	}
	if d.ID != IDByURL || d.IntervalSeconds != 10 || d.Misses != 3 {
		t.Errorf("got %+v", d)
	}
	if s := d.Method.Scan; len(s.Ports) != 1 || s.Ports[0] != 4840 || s.ConnectionsPerSecond != 50 || s.IntervalSeconds != 300 {
		t.Errorf("the scan is %+v", s)
	}
}

func TestTargets(t *testing.T) {
	for cidrs, want := range map[string]string{
		"10.1.2.0/30":        "10.1.2.1:1 10.1.2.1:2 10.1.2.2:1 10.1.2.2:2",
		"10.1.2.0/31":        "10.1.2.0:1 10.1.2.0:2 10.1.2.1:1 10.1.2.1:2",
		"10.1.2.7/32":        "10.1.2.7:1 10.1.2.7:2",
		"fd00::/127":         "[fd00::]:1 [fd00::]:2 [fd00::1]:1 [fd00::1]:2",
		"255.255.255.252/30": "255.255.255.253:1 255.255.255.253:2 255.255.255.254:1 255.255.255.254:2",
	} {
		d, err := Parse("opcuaDiscoveryMethod: {scan: {cidrs: ['" + cidrs + "'], ports: [1, 2]}}")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, target := range d.Method.Scan.Targets {
			got = append(got, target.String())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %s, want %s", cidrs, got, want)
		}
	}
}

func TestParseURL(t *testing.T) {
	for text, want := range map[string]string{
		"opc.tcp://plc:4841/UA/Server":           "opc.tcp://plc:4841/UA/Server",
		"opc.tcp://plc":                          "opc.tcp://plc:4840",
		"opc.tcp://10.1.2.3/":                    "opc.tcp://10.1.2.3:4840/",
		"opc.tcp://[fd00::1]:4840":               "opc.tcp://[fd00::1]:4840",
		"opc.tcp://MY_PC:48010/a%20b":            "opc.tcp://MY_PC:48010/a%20b",
		"opc.tcp://":                             "",
		"opc.tcp:///path":                        "",
		"opc.tcp://plc:0":                        "",
		"opc.tcp://plc:70000":                    "",
		"opc.tcp://plc:http":                     "",
		"opc.tcp://u:p@plc":                      "",
		"opc.tcp://plc?a=b":                      "",
		"opc.tcp://plc?":                         "",
		"opc.tcp://plc#a":                        "",
		"opc.tcp://plc/a b":                      "",
		"opc.tcp://plc/\n":                       "",
		"opc.tcp://pl$c":                         "",
		"opc.tcp://[fe80::1%25eth0]":             "",
		"http://plc":                             "",
		"OPC.TCP://plc":                          "",
		"":                                       "",
		"opc.tcp://" + strings.Repeat("a", 253):  "opc.tcp://" + strings.Repeat("a", 253) + ":4840",
		"opc.tcp://" + strings.Repeat("a", 254):  "",
		"opc.tcp://" + strings.Repeat("a", 2000): "",
	} {
		u, err := ParseURL(text)
		switch {
		case (err == nil) != (want != ""):
			t.Errorf("%q: %v", text, err)
		case err == nil && u.String() != want:
			t.Errorf("%q is %s, want %s", text, u, want)
		}
	}
}

func TestParseReported(t *testing.T) {
	for text, want := range map[string]string{
		"opc.tcp://plc:4841/UA//Server":          "opc.tcp://plc:4841/UA//Server",
		"OPC.TCP://Plc":                          "opc.tcp://plc:4840",
		" opc.tcp:// plc :4841/two words ":       "opc.tcp://plc:4841/two%20words",
		"opc.tcp://plc:4841/a%20b c":             "opc.tcp://plc:4841/a%20b%20c",
		"opc.tcp://plc:4841/50%/c d":             "opc.tcp://plc:4841/50%25/c%20d",
		"opc.tcp://plc:4841/UA?line=1#x":         "opc.tcp://plc:4841/UA",
		"opc.tcp://plc?line=1":                   "opc.tcp://plc:4840",
		"opc.tcp://plc:0/UA":                     "opc.tcp://plc:4840/UA",
		"opc.tcp://plc:":                         "opc.tcp://plc:4840",
		"opc.tcp://Прибор:4841/станок":           "opc.tcp://xn--90antbfd:4841/%D1%81%D1%82%D0%B0%D0%BD%D0%BE%D0%BA",
		"opc.tcp://größe.example":                "opc.tcp://xn--gre-6ka8i.example:4840",
		"Opc.Tcp://[fd00::1]:4841":               "opc.tcp://[fd00::1]:4841",
		"":                                       "",
		"opc.tcp://":                             "",
		"opc.tcp:///UA":                          "",
		"opc.wss://plc":                          "",
		"http://plc":                             "",
		"opc.tcp://p lc":                         "",
		"opc.tcp://u:p@plc":                      "",
		"opc.tcp://plc:70000":                    "",
		"opc.tcp://[plc":                         "",
		"opc.tcp://p\x00lc":                      "",
		"OPC.TCP://" + strings.Repeat("a", 2000): "",
	} {
		u, err := ParseReported(text)
		switch {
		case (err == nil) != (want != ""):
			t.Errorf("%q is %v: %v", text, u, err)
		case err == nil && u.String() != want:
			t.Errorf("%q is %s, want %s", text, u, want)
		}
	}
}

func TestHosts(t *testing.T) {
	d, err := Parse("{opcuaDiscoveryMethod: {mdns: {}}, allowHosts: [10.0.0.0/8, 192.0.2.1, PLC, '*.plant.example', 'fd00::/8']}")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"plc": true, "PLC.": true, "plc2": false, "oven.plant.example": true, "a.oven.plant.example": true,
		"plant.example": false, ".plant.example": false, "evilplant.example": false,
	} {
		if got := d.Hosts.Name(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for addr, want := range map[string]bool{
		"10.9.9.9": true, "::ffff:10.9.9.9": true, "192.0.2.1": true, "192.0.2.2": false, "fd00::1": true, "fe80::1": false,
	} {
		if got := d.Hosts.Addr(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: %v", addr, got)
		}
	}
}

// FuzzURLs checks that a URL of an author stays the same when it is parsed again, and that what a
// server reports becomes one that an author could write.
func FuzzURLs(f *testing.F) {
	f.Add("opc.tcp://[fd00::1]:4840/a%20b")
	f.Add("OPC.TCP:// plc:0/a b?c")
	f.Fuzz(func(t *testing.T, text string) {
		for _, parse := range []func(string) (URL, error){ParseURL, ParseReported} {
			u, err := parse(text)
			if err != nil || len(u.String()) > maxURLBytes {
				continue
			}
			if again, err := ParseURL(u.String()); err != nil || again != u {
				t.Errorf("%q is %+v, and again %+v, %v", text, u, again, err)
			}
		}
	})
}
