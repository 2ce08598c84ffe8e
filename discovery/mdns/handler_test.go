package mdns

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

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

// TestFirstListAndEnd: there is a list even if there are no devices, and Discover ends with
// its context. The type is one that nothing announces.
func TestFirstListAndEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	lists, ended := make(chan []discovery.Device, 10), make(chan error, 1)
	go func() {
		request := discovery.Request{Details: "services: [_akri-test-none._tcp]\ninterfaces: [no-such-interface]"}
		ended <- New(browse.New(browse.Options{})).Discover(ctx, request, func(devices []discovery.Device) error {
			lists <- devices
			return nil
		})
	}()
	select {
	case devices := <-lists:
		if devices == nil || len(devices) != 0 {
			t.Errorf("the first list is %v", devices)
		}
	case err := <-ended:
		t.Fatal(err)
	case <-time.After(30 * time.Second):
		t.Fatal("no list")
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("ended by %v", err)
	}
}

// TestErrorOfSend: Discover returns the error of send.
func TestErrorOfSend(t *testing.T) {
	gone := errors.New("the agent is gone")
	request := discovery.Request{Details: "services: [_akri-test-none._tcp]\ninterfaces: [no-such-interface]"}
	err := New(browse.New(browse.Options{})).Discover(t.Context(), request, func([]discovery.Device) error { return gone })
	if !errors.Is(err, gone) {
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
