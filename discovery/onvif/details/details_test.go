package details

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/discovery/handlertest"
)

func TestParse(t *testing.T) {
	handlertest.Validate(t, Validate, map[string]handlertest.Details{
		"nothing": {"", ""},
		"what Akri's chart renders": {`ipAddresses:
  action: Exclude
  items: []
macAddresses:
  action: Exclude
  items: []
scopes:
  action: Exclude
  items: []
uuids:
  action: Exclude
  items: []
discoveryTimeoutSeconds: 1
`, ""},
		"all of ours": {`{intervalSeconds: 5, misses: 2, interfaces: [eth1], addresses: [10.0.0.5, 10.1.0.0/28, "fd00::5"],
			id: uuid, details: [information, streams], allowForeignXAddrs: true, insecureSkipVerify: true}`, ""},
		"networks and bare MACs":    {"ipAddresses: {items: [10.0.0.0/24, 'fd00::1']}\nmacAddresses: {items: [02005E100001]}", ""},
		"an empty filter":           {"uuids: {action: Include, items: []}", "uuids.items: empty, so that no device passes"},
		"a wildcard address":        {"ipAddresses: {items: ['10.0.0.*']}", `"10.0.0.*" is not an IP address or range; write`},
		"a URL as address":          {"ipAddresses: {items: ['http://10.0.0.1/a']}", "ipAddresses.items[0]"},
		"from one to another":       {"ipAddresses: {action: Exclude, items: [10.0.0.1, 10.0.0.1-10.0.0.9]}", "ipAddresses.items[1]"},
		"half a MAC address":        {"macAddresses: {items: ['02:00:5e']}", `"02:00:5e" is not a MAC address; write all`},
		"a mapped address":          {"ipAddresses: {items: ['::ffff:10.0.0.1']}", ""},
		"any scopes":                {"scopes: {items: ['onvif://www.onvif.org/type/*', 'urn:plant:7', '*/ptz', location/hall]}", ""},
		"a negative timeout":        {"discoveryTimeoutSeconds: -1", "discoveryTimeoutSeconds: want 1 to 60, not -1"},
		"no interval":               {"intervalSeconds: 0", "intervalSeconds: want 1 to 3600"},
		"no misses":                 {"misses: 0", "misses: want 1 to 100"},
		"an unknown id":             {"id: uid", `id: want url or uuid or mac or serial, not "uid"; did you mean uuid?`},
		"unknown details":           {"details: [information, stream]", "details[1]: want information or streams"},
		"a path as interface":       {"interfaces: [/dev/eth0]", "interfaces[0]: \"/dev/eth0\" is not the name"},
		"an empty interface":        {`interfaces: [""]`, "interfaces[0]"},
		"a host name":               {"addresses: [camera.local]", `addresses[0]: "camera.local" is not an IP address or range`},
		"loopback":                  {"addresses: [127.0.0.1]", "the loopback address"},
		"loopback in IPv6":          {"addresses: ['::ffff:127.0.0.1']", "the loopback address"},
		"multicast":                 {"addresses: [10.0.0.1, 239.255.255.250]", "addresses[1]: 239.255.255.250 is a multicast"},
		"the metadata service":      {"addresses: [169.254.169.254]", "metadata service"},
		"a zone":                    {"addresses: [fe80::1%eth0]", "not an IP address"},
		"a large range":             {"addresses: [10.0.0.0/19]", "more than 4096 addresses"},
		"a very large range":        {"addresses: ['fd00::/8']", "more than 4096 addresses"},
		"several ranges, too large": {"addresses: [10.0.0.0/20, 10.1.0.1]", "addresses[1]: more than 4096 addresses"},
	})
}

func TestDefaults(t *testing.T) {
	d, err := Parse("")
	if err != nil {
		t.Fatal(err)
	}
	if d.Timeout() != 2*time.Second || d.Interval() != 10*time.Second ||
		d.Misses != 3 || d.ID != ByURL || d.AllowForeignXAddrs || d.InsecureSkipVerify {
		t.Errorf("the defaults are %+v", d)
	}
	if d, _ := Parse("{discoveryTimeoutSeconds: 20}"); d.Interval() != 20*time.Second {
		t.Errorf("the interval is %v, shorter than the time for answers", d.Interval())
	}
}

// TestFilters checks which items match what a device has.
func TestFilters(t *testing.T) {
	const scopes = "onvif://www.onvif.org/"
	for _, tc := range []struct {
		matches     func(item, value string) bool
		item, value string
		want        bool
	}{
		{MatchesAddress, "10.0.0.0/28", "10.0.0.5", true}, {MatchesAddress, "::ffff:10.0.0.5", "10.0.0.5", true},
		{MatchesAddress, "10.0.0.5", "::ffff:10.0.0.5", true}, {MatchesAddress, "gate.example", "10.0.0.5", false},
		{MatchesMAC, "02-00-5E-10-00-01", "02005e100001", true}, {MatchesMAC, "02:00:5e", "02005e100001", false},
		{MatchesScope, scopes + "location/hall", scopes + "location/hall", true}, {MatchesScope, "location/hall", scopes + "location/hall", true},
		{MatchesScope, "/location/*", scopes + "location/hall", true}, {MatchesScope, "name/A B", scopes + "name/A%20B", true},
		{MatchesScope, "*/hall", scopes + "location/hall", true}, {MatchesScope, "urn:plant:7", "urn:plant:7", true},
		{MatchesScope, "*/ptz", scopes + "type/ptz", true}, {MatchesScope, "location", scopes + "location/hall", false},
		{MatchesScope, scopes + "name/A B", scopes + "name/A%20B", true}, {MatchesScope, "plant:7", "urn:plant:7", false},
		{MatchesAddress, "::ffff:10.0.0.5", "10.0.0.6", false}, {MatchesScope, "*/hall/x", scopes + "location/hall", false},
		{MatchesScope, "hall", scopes + "location/hall", false}, {MatchesScope, "", scopes + "location/hall", false},
	} {
		if got := tc.matches(tc.item, tc.value); got != tc.want {
			t.Errorf("%q and %q: %t", tc.item, tc.value, got)
		}
	}
}

func TestAddresses(t *testing.T) {
	d, err := Parse("addresses: [10.0.0.5, 10.1.0.8/30, 169.254.169.252/30]")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, address := range d.Targets() {
		got = append(got, address.String())
	}
	want := "10.0.0.5 10.1.0.8 10.1.0.9 10.1.0.10 10.1.0.11 169.254.169.252 169.254.169.253 169.254.169.255"
	if strings.Join(got, " ") != want {
		t.Errorf("the targets are %v, want %v", got, want)
	}
	if hosts := d.Hosts(); len(hosts) != 1 || hosts[0].String() != "10.0.0.5" {
		t.Errorf("the hosts are %v", hosts)
	}
	if !d.Lists(netip.MustParseAddr("::ffff:10.1.0.9")) || d.Lists(netip.MustParseAddr("10.1.0.12")) {
		t.Error("Lists is wrong")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("addresses: [10.0.0.5, 10.1.0.0/28, 'fd00::/120']\ninterfaces: [eth0]")
	f.Add("scopes: {action: Include, items: [a]}\nid: uuid")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := Parse(text)
		if err != nil {
			return
		}
		for _, address := range d.Targets() {
			if CheckAddress(address) != nil || !d.Lists(address) {
				t.Fatalf("%s is a target", address)
			}
		}
		if len(d.Targets()) > MaxAddresses || len(d.Interfaces) > MaxInterfaces || d.Interval() < d.Timeout() {
			t.Fatalf("not bounded: %+v", d)
		}
	})
}
