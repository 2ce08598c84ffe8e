package onvif

import (
	"fmt"
	"testing"

	"akri.sh/akri/discovery/onvif/wsdiscovery"
)

// TestURLsOfOneCamera has announcements of camera 1 with several URLs.
func TestURLsOfOneCamera(t *testing.T) {
	const usual, secure = "http://10.0.0.1/onvif/device_service", "https://10.0.0.1/onvif/device_service"
	const foreign = "allowForeignXAddrs: true"
	const withPort = "http://10.0.0.1:80/onvif/device_service"
	for name, tc := range map[string]struct {
		details  string
		urls     []string
		want     []string
		failures int
	}{
		"no URL":             {"", nil, []string{usual}, 0},
		"another path":       {"", []string{"http://10.0.0.1:8080/service"}, []string{"http://10.0.0.1:8080/service"}, 0},
		"the port":           {"", []string{withPort, usual}, []string{usual}, 0},
		"only with the port": {"", []string{withPort}, []string{withPort}, 0},
		"capital letters":    {"", []string{usual, "HTTP://10.0.0.1/a", "http://10.0.0.1/a"}, []string{"HTTP://10.0.0.1/a", usual}, 0},
		"IPv6 of the link":   {"", []string{"http://[fe80::1]/onvif/device_service", usual}, []string{usual}, 0},
		"another network":    {"", []string{"http://192.168.1.10/onvif/device_service", usual}, []string{usual}, 0},
		"IPv6 of the link, if others are allowed": {
			foreign, []string{"http://[fe80::1]/onvif/device_service", "http://169.254.7.7/", usual},
			[]string{usual}, 0,
		},
		"only another network":        {"", []string{"http://192.168.1.10/onvif/device_service"}, nil, 1},
		"http and https":              {"", []string{usual, secure}, []string{usual, secure}, 0},
		"http and https, id by MAC":   {"id: mac", []string{usual, secure}, []string{usual}, 0},
		"names in several spellings":  {foreign, []string{"http://CAM.local/x", "http://cam.local/x"}, []string{"http://CAM.local/x"}, 0},
		"IPv6 in several spellings":   {foreign, []string{"http://[FD00::1]/x", "http://[fd00:0::1]:80/x"}, []string{"http://[FD00::1]/x"}, 0},
		"a query in several versions": {"", []string{usual + "?a=1", usual + "?a=2"}, []string{usual + "?a=1", usual + "?a=2"}, 0},
	} {
		b := newBench(t, tc.details)
		for range 20 {
			from, a := cameraNumber(wsdiscovery.Match, 1)
			a.XAddrs = append([]string(nil), tc.urls...)
			b.announced(b.now, from, a)
			for _, r := range b.begin(b.now) {
				b.ended(b.now, outcome{request: r, alive: true, uuid: r.uuid, facts: facts{PropertyMACAddress: "02:00:00:00:00:01"}})
			}
			b.window()
		}
		var got []string
		for _, device := range b.devices() {
			got = append(got, device.Properties[PropertyServiceURL])
		}
		if fmt.Sprint(got) != fmt.Sprint(tc.want) || b.counts[failedForeign] != tc.failures {
			t.Errorf("%s: got %q, failures %v; want %q", name, got, b.counts, tc.want)
		}
	}
}

// TestUUIDThatChanges has a camera with another UUID in each answer, and then another address.
func TestUUIDThatChanges(t *testing.T) {
	for kind, id := range map[string]string{"mac": "02:00:00:00:00:0a", "serial": "S-1"} {
		b := newBench(t, "id: "+kind)
		round := func(address, uuid int) {
			from, a := cameraNumber(wsdiscovery.Match, address)
			a.UUID = fmt.Sprint("random-", uuid)
			b.announced(b.now, from, a)
			for _, r := range b.begin(b.now) {
				said := facts{PropertyMACAddress: "02-00-00-00-00-0A", PropertySerialNumber: "S-1"}
				_, a := cameraNumber(wsdiscovery.Match, address)
				b.ended(b.now, outcome{request: r, alive: r.url == a.XAddrs[0], uuid: r.uuid, facts: said})
			}
			b.window()
		}
		for n := range 30 {
			round(1, n)
			devices := b.devices()
			if len(devices) != 1 || devices[0].ID != id || devices[0].Properties[PropertyUUID] != "random-0" || len(b.cameras) > 1 {
				t.Fatalf("id: %s: got %v of %d cameras", kind, devices, len(b.cameras))
			}
		}
		for n := range 10 {
			round(2, 100+n)
			if devices := b.devices(); len(devices) != 1 || devices[0].ID != id {
				t.Fatalf("id: %s: at another address: got %v", kind, devices)
			}
		}
	}
	b := newBench(t, "id: mac")
	b.hears(wsdiscovery.Match, 1)
	for _, r := range b.begin(b.now) {
		b.ended(b.now, outcome{request: r, alive: true, uuid: r.uuid})
	}
	b.wants("without a MAC address")
}

// TestSpareURL has a camera with a second URL that does not answer.
func TestSpareURL(t *testing.T) {
	b := newBench(t, "id: uuid")
	b.hears(wsdiscovery.Match, 1)
	b.works(1)
	b.wants("one URL", 1)
	from, a := cameraNumber(wsdiscovery.Match, 2)
	a.UUID = "uuid-1"
	b.announced(b.now, from, a)
	for _, r := range b.begin(b.now) {
		if r.spare != (r.url == a.XAddrs[0]) {
			t.Errorf("%s is spare: %v", r.url, r.spare)
		}
	}
}

// TestSpellingsInTurns has a camera that writes its URL in another way each time. The shortest
// one counts.
func TestSpellingsInTurns(t *testing.T) {
	spellings := []string{"http://10.0.0.1:80/x", "HTTP://10.0.0.1:80/x", "http://10.0.0.1/x"} // each is better than those before
	for first := range spellings {
		b, best := newBench(t, ""), -1
		for n := range 2 * len(spellings) {
			i := (first + n) % len(spellings)
			from, a := cameraNumber(wsdiscovery.Match, 1)
			a.XAddrs = spellings[i : i+1]
			b.announced(b.now, from, a)
			for _, r := range b.begin(b.now) {
				b.ended(b.now, outcome{request: r, alive: true, uuid: r.uuid})
			}
			isChanged := b.changed
			if got := b.devices()[0].Properties[PropertyServiceURL]; got != spellings[max(i, best)] || isChanged != (i > best) {
				t.Errorf("%s, first %s: got %s, changed %v", spellings[i], spellings[first], got, isChanged)
			}
			best = max(i, best)
		}
	}
}
