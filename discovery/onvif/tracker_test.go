package onvif

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"akri.sh/akri/discovery/onvif/details"
	"akri.sh/akri/discovery/onvif/wsdiscovery"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// bench is a tracker with a clock.
type bench struct {
	*tracker
	t      *testing.T
	now    time.Time
	counts map[string]int
}

func newBench(t *testing.T, text string) *bench {
	t.Helper()
	settings, err := details.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, now: epoch, counts: map[string]int{}}
	b.tracker = newTracker(settings, silent(func(reason string) { b.counts[reason]++ }), func() float64 { return 0.5 })
	return b
}

// cameraNumber returns an announcement of a camera at 10.0.0.N.
func cameraNumber(kind wsdiscovery.Kind, n int) (netip.Addr, wsdiscovery.Announcement) {
	host := netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)})
	return host, wsdiscovery.Announcement{
		Kind: kind, UUID: fmt.Sprintf("uuid-%d", n), Types: []string{"dn:NetworkVideoTransmitter"},
		Scopes: []string{"onvif://www.onvif.org/name/gate"}, XAddrs: []string{"http://" + host.String() + "/onvif/device_service"},
	}
}

func (b *bench) hears(kind wsdiscovery.Kind, n int) {
	from, announcement := cameraNumber(kind, n)
	b.announced(b.now, from, announcement)
}

// works ends all requests that are due. Cameras in the list answer.
func (b *bench) works(alive ...int) (asked, checked int) {
	for _, r := range b.begin(b.now) {
		answers := slices.ContainsFunc(alive, func(n int) bool {
			_, a := cameraNumber(wsdiscovery.Match, n)
			return r.url == a.XAddrs[0]
		})
		if r.check {
			checked++
		} else {
			asked++
		}
		b.ended(b.now, outcome{request: r, alive: answers, uuid: r.uuid, facts: facts{PropertyMACAddress: "02:00:00:00:00:01"}})
	}
	return asked, checked
}

// window passes the time until the next probe is evaluated.
func (b *bench) window() {
	b.now = b.now.Add(b.settings.Interval())
	b.evaluated(b.now)
}

func (b *bench) wants(what string, numbers ...int) {
	b.t.Helper()
	var got, want []string
	for _, device := range b.devices() {
		got = append(got, device.Properties[PropertyUUID])
	}
	for _, n := range numbers {
		want = append(want, fmt.Sprintf("uuid-%d", n))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		b.t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestDeviceAsAkri(t *testing.T) {
	b := newBench(t, "{discoveryTimeoutSeconds: 1}")
	b.hears(wsdiscovery.Match, 1)
	b.works(1)
	device := b.devices()[0]
	if device.ID != "http://10.0.0.1/onvif/device_service-uuid-1" {
		t.Errorf("the id is %q", device.ID)
	}
	want := map[string]string{
		"ONVIF_DEVICE_SERVICE_URL": "http://10.0.0.1/onvif/device_service", "ONVIF_DEVICE_UUID": "uuid-1",
		"ONVIF_DEVICE_IP_ADDRESS": "10.0.0.1", "ONVIF_DEVICE_MAC_ADDRESS": "02:00:00:00:00:01",
		"AKRI_DISPLAY_NAME": "gate at 10.0.0.1",
	}
	if fmt.Sprint(device.Properties) != fmt.Sprint(want) {
		t.Errorf("the properties are %v", device.Properties)
	}
}

func TestAnnouncementsThatAreIgnored(t *testing.T) {
	for name, tc := range map[string]struct {
		details string
		change  func(*wsdiscovery.Announcement)
		reason  string
	}{
		"another host": {"", func(a *wsdiscovery.Announcement) { a.XAddrs = []string{"http://10.0.0.9/"} }, failedForeign},
		"a host name":  {"", func(a *wsdiscovery.Announcement) { a.XAddrs = []string{"http://kubernetes.default/"} }, failedForeign},
		"a file":       {"", func(a *wsdiscovery.Announcement) { a.XAddrs = []string{"file:///etc/passwd"} }, failedForeign},
		"credentials":  {"", func(a *wsdiscovery.Announcement) { a.XAddrs = []string{"http://u:p@10.0.0.1/"} }, failedForeign},
		"a fragment":   {"", func(a *wsdiscovery.Announcement) { a.XAddrs = []string{"http://10.0.0.1/#a"} }, failedForeign},
		"loopback, permitted": {
			"allowForeignXAddrs: true",
			func(a *wsdiscovery.Announcement) { a.XAddrs = []string{"http://127.0.0.1/"} },
			failedForeign,
		},
		"metadata, permitted": {
			"allowForeignXAddrs: true",
			func(a *wsdiscovery.Announcement) { a.XAddrs = []string{"http://169.254.169.254/"} },
			failedForeign,
		},
		"a printer":                   {"", func(a *wsdiscovery.Announcement) { a.Types = []string{"wsdp:Device"} }, ""},
		"the uuid, excluded":          {"uuids: {action: Exclude, items: [UUID-1]}", nil, ""},
		"the uuid, not included":      {"uuids: {action: Include, items: [uuid-2]}", nil, ""},
		"the scope, excluded":         {"scopes: {action: Exclude, items: ['onvif://www.onvif.org/name/gate']}", nil, ""},
		"the scope, in other letters": {"scopes: {action: Include, items: ['onvif://www.onvif.org/name/Gate']}", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, tc.details)
			from, announcement := cameraNumber(wsdiscovery.Match, 1)
			if tc.change != nil {
				tc.change(&announcement)
			}
			b.announced(b.now, from, announcement)
			if len(b.cameras) > 0 {
				t.Error("it is accepted")
			}
			if tc.reason != "" && b.counts[tc.reason] != 1 {
				t.Errorf("the failures are %v, want %s", b.counts, tc.reason)
			}
		})
	}
	b := newBench(t, "allowForeignXAddrs: true")
	from, announcement := cameraNumber(wsdiscovery.Match, 1)
	announcement.XAddrs = []string{"http://camera.local/"}
	if b.announced(b.now, from, announcement); len(b.cameras) != 1 {
		t.Error("a host name is not accepted with allowForeignXAddrs")
	}
}

func TestFilters(t *testing.T) {
	for text, want := range map[string]bool{
		"ipAddresses: {action: Include, items: [10.0.0.1]}":             true,
		"ipAddresses: {action: Exclude, items: [10.0.0.1]}":             false,
		"ipAddresses: {items: [10.0.0.0/30]}":                           true,
		"ipAddresses: {items: [10.0.1.0/24, 'fd00::/8']}":               false,
		"macAddresses: {items: [02-00-00-00-00-01]}":                    true,
		"macAddresses: {action: Exclude, items: ['020000000001']}":      false,
		"scopes: {items: ['onvif://www.onvif.org/name/*']}":             true,
		"ipAddresses: {action: Exclude, items: []}":                     true,
		"macAddresses: {action: Include, items: ['02:00:00:00:00:01']}": true,
		"macAddresses: {action: Include, items: ['02:00:00:00:00:0A']}": false,
		"uuids: {action: Include, items: ['urn:uuid:UUID-1']}":          true,
		"scopes: {items: ['onvif://www.onvif.org/name/gate']}":          true,
	} {
		b := newBench(t, text)
		b.hears(wsdiscovery.Match, 1)
		b.works(1)
		if got := len(b.devices()) == 1; got != want {
			t.Errorf("%s: admitted %v, want %v", text, got, want)
		}
	}
}

func TestBoundsOnCameras(t *testing.T) {
	b := newBench(t, "")
	from, announcement := cameraNumber(wsdiscovery.Match, 1)
	for n := range maxCamerasPerHost + 10 {
		announcement.UUID = fmt.Sprint(n)
		b.announced(b.now, from, announcement)
	}
	if len(b.cameras) != maxCamerasPerHost || b.counts[failedCameras] != 10 {
		t.Errorf("%d cameras at one host, failures %v", len(b.cameras), b.counts)
	}
	for n := range maxCameras + 10 {
		b.hears(wsdiscovery.Match, n+2)
	}
	if len(b.cameras) != maxCameras {
		t.Errorf("%d cameras, want %d", len(b.cameras), maxCameras)
	}
	if requests := b.begin(b.now); len(requests) != maxQuickRequests {
		t.Errorf("%d requests at a time", len(requests))
	}
}
