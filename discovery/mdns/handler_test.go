package mdns

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/mdns/browse"
	"akri.sh/akri/discovery/mdns/details"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestRefusal: the author of a Configuration learns what is wrong.
func TestRefusal(t *testing.T) {
	err := New(browse.New(browse.Options{})).Discover(t.Context(), discovery.Request{Details: "services: [http]"}, nil)
	const want = `discoveryDetails of mdns: services[0]: "http" is not a type of services; write it like _http._tcp`
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v", err)
	}
}

// fakeBrowser finds these services.
type fakeBrowser []browse.Service

func (b fakeBrowser) Browse(ctx context.Context, _ browse.Query, changed func([]browse.Service) error) error {
	if err := changed(b); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// TestLists: the filters apply, a list may be empty but not missing, and Discover ends with its
// context.
func TestLists(t *testing.T) {
	found := fakeBrowser{
		{Instance: "Gate", Type: "_http._tcp", Host: "gate.local", Port: 80, Addresses: addresses("192.0.2.1")},
		{Instance: "Door", Type: "_http._tcp", Host: "door.local", Port: 80, Addresses: addresses("192.0.2.2")},
	}
	for filter, want := range map[string]string{`["*"]`: "Gate Door", "[door]": "Door", "[]": ""} {
		ctx, cancel := context.WithCancel(t.Context())
		request := discovery.Request{Details: "services: [_http._tcp]\ninstances: {items: " + filter + "}"}
		err := New(found).Discover(ctx, request, func(devices []discovery.Device) error {
			var names []string
			for _, device := range devices {
				names = append(names, device.Properties[PropertyInstance])
			}
			if got := strings.Join(names, " "); devices == nil || got != want {
				t.Errorf("%s: the list is %v", filter, devices)
			}
			cancel()
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("ended by %v", err)
		}
	}
}

// TestErrorOfSend: Discover returns the error of send.
func TestErrorOfSend(t *testing.T) {
	gone := errors.New("the agent is gone")
	request := discovery.Request{Details: "services: [_http._tcp]"}
	if err := New(fakeBrowser{}).Discover(t.Context(), request, func([]discovery.Device) error { return gone }); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}

// FuzzDetails: what package details accepts, the browser accepts.
func FuzzDetails(f *testing.F) {
	for _, service := range []string{
		"_http._tcp", "*", "_printer._sub._ipp._tcp", "_A-b_c._UDP", "x._sub._a._tcp", `\1._sub._a._tcp`, "_._tcp",
	} {
		f.Add(service, "local")
	}
	f.Add("_http._tcp", "home.arpa.")
	f.Add("_http._tcp", "a..b")
	f.Fuzz(func(t *testing.T, service, domain string) {
		if strings.ContainsAny(service+domain, "'\n\r") {
			return
		}
		d, err := details.Parse("services: ['" + service + "']\ndomain: '" + domain + "'")
		if err != nil {
			return
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err = browse.New(browse.Options{}).Browse(ctx, queryOf(d), func([]browse.Service) error { return nil })
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("%q in %q: %v", service, domain, err)
		}
	})
}
