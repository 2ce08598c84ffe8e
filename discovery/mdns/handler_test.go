package mdns

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/handlertest"
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

// TestFirstList: there is a list even if there are no devices. The type is one that nothing
// announces.
func TestFirstList(t *testing.T) {
	const text = "services: [_akri-test-none._tcp]\ninterfaces: [no-such-interface]"
	handlertest.Open(t, New(browse.New(browse.Options{})), discovery.Request{Details: text}).UntilIDs()
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
