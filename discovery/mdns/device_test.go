package mdns

import (
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"testing"
	"unicode/utf8"

	"akri.sh/akri/discovery/mdns/browse"
	"akri.sh/akri/discovery/mdns/browse/wire"
)

func addresses(texts ...string) (all []netip.Addr) {
	for _, text := range texts {
		all = append(all, netip.MustParseAddr(text))
	}
	return all
}

func TestDevice(t *testing.T) {
	got := device(browse.Service{
		Instance: "Camera\x00 1", Type: "_http._tcp", Host: "cam-1.local", Port: 8080,
		Addresses: addresses("192.0.2.1", "2001:db8::1", "169.254.1.1", "fe80::1%eth0"),
		TXT: []wire.Pair{
			{Key: "path", Value: "/view?size=1 2"}, {Key: "model.name", Value: "X2"}, {Key: "MODEL-NAME", Value: "other"},
			{Key: "flag"}, {Key: "binary", Value: "\xff\x00"},
		},
	})
	want := map[string]string{
		"MDNS_SERVICE": "_http._tcp", "MDNS_INSTANCE": "Camera\ufffd 1", "MDNS_HOST": "cam-1.local", "MDNS_PORT": "8080",
		"MDNS_ADDRESS": "192.0.2.1", "MDNS_ADDRESSES": "192.0.2.1,2001:db8::1,169.254.1.1",
		"MDNS_URL":      "http://192.0.2.1:8080/view?size=1%202",
		"MDNS_TXT_PATH": "/view?size=1 2", "MDNS_TXT_MODEL_NAME": "X2", "MDNS_TXT_FLAG": "", "MDNS_TXT_BINARY": "\ufffd\ufffd",
		"AKRI_DISPLAY_NAME": "Camera\ufffd 1 at 192.0.2.1",
	}
	if !maps.Equal(got.Properties, want) {
		t.Errorf("got  %q\nwant %q", got.Properties, want)
	}
}

func TestURL(t *testing.T) {
	for _, tc := range []struct{ kind, address, key, value, want string }{
		{"_http._tcp", "192.0.2.1", "", "", "http://192.0.2.1:80"},
		{"_HTTP._TCP", "2001:db8::1", "PATH", "x", "http://[2001:db8::1]:80/x"},
		{"_https._tcp", "fe80::1%eth0", "path", "/", "https://[fe80::1%25eth0]:80/"},
		{"_ipp._tcp", "192.0.2.1", "rp", "printers/laser", "ipp://192.0.2.1:80/printers/laser"},
		{"_opcua-tcp._tcp", "192.0.2.1", "path", "/UA/Server", "opc.tcp://192.0.2.1:80/UA/Server"},
		{"_rtsp._tcp", "192.0.2.1", "path", "//evil.example/x", "rtsp://192.0.2.1:80/evil.example/x"},
		{"_http._tcp", "192.0.2.1", "path", "@evil.example", "http://192.0.2.1:80/@evil.example"},
		{"_http._tcp", "192.0.2.1", "path", "http://evil.example/", "http://192.0.2.1:80/http://evil.example/"},
		{"_http._tcp", "192.0.2.1", "path", "/a%20b#c", "http://192.0.2.1:80/a%20b"},
		{"_http._tcp", "192.0.2.1", "path", "/a\r\nHost: evil", "http://192.0.2.1:80"},
		{"_http._tcp", "192.0.2.1", "path", "/%zz", "http://192.0.2.1:80"},
		{"_googlecast._tcp", "192.0.2.1", "", "", ""},
	} {
		s := browse.Service{Type: tc.kind, Port: 80, TXT: []wire.Pair{{Key: tc.key, Value: tc.value}}}
		if got := serviceURL(s, netip.MustParseAddr(tc.address)); got != tc.want {
			t.Errorf("%+v: got %s", tc, got)
		}
	}
}

func TestReportedAddresses(t *testing.T) {
	var many []netip.Addr
	for i := range 2 * maxAddresses {
		many = append(many, netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}))
	}
	for _, tc := range []struct {
		given []netip.Addr
		want  string
	}{
		{addresses("fe80::1%eth0"), "fe80::1%eth0"},
		{addresses("fe80::1%eth0", "fe80::1%eth1"), "fe80::1%eth0"},
		{addresses("169.254.1.1", "fe80::1%eth0"), "169.254.1.1"},
		{many, join(many[:maxAddresses])},
	} {
		if got := join(reported(tc.given)); got != tc.want {
			t.Errorf("%v: got %s, want %s", tc.given, got, tc.want)
		}
	}
}

// FuzzTXT: whatever a TXT record contains, properties are text, and fewer than an agent
// accepts. The browser keeps TXT records of 2048 bytes.
func FuzzTXT(f *testing.F) {
	f.Add("\x07path=/x\x04b=\xff\x00")
	f.Add(strings.Repeat("\xc8"+strings.Repeat("k", 200), 10))
	f.Add("\xfca=" + strings.Repeat("\xff", 250) + "\xf2b=" + strings.Repeat("\xff\x00", 120))
	f.Fuzz(func(t *testing.T, data string) {
		data = data[:min(len(data), 2048)]
		got := device(browse.Service{
			Instance: data, Type: "_http._tcp", Host: "h.local", Port: 1, Addresses: addresses("192.0.2.1"), TXT: wire.ParseText(data),
		})
		total := 0
		for name, value := range got.Properties {
			total += len(name) + len(value)
			if !utf8.ValidString(value) || strings.ContainsRune(value, 0) || strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" {
				t.Fatalf("%q=%q", name, value)
			}
		}
		if txt := total - len(fmt.Sprint(got.Properties["MDNS_INSTANCE"], got.Properties["MDNS_URL"])); txt > 7000 {
			t.Fatalf("%d bytes of properties", txt)
		}
	})
}
