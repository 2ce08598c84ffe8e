package web

import (
	"context"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/discovery"
)

func networks(t *testing.T, allow, deny []string) Networks {
	t.Helper()
	parse := func(texts []string) (all []netip.Prefix) {
		for _, text := range texts {
			all = append(all, netip.MustParsePrefix(text))
		}
		return all
	}
	return Networks{Allow: parse(allow), Deny: parse(deny)}
}

func TestNetworks(t *testing.T) {
	byDefault := networks(t, nil, DefaultDeny)
	restricted := networks(t, []string{"10.0.0.0/8", "fd00::/8"}, []string{"10.9.0.0/16"})
	for address, want := range map[string]struct{ byDefault, restricted bool }{
		"10.1.2.3": {true, true}, "10.9.0.1": {true, false}, "192.0.2.1": {true, false}, "127.0.0.1": {false, false},
		"::1": {false, false}, "169.254.169.254": {false, false}, "::ffff:169.254.169.254": {false, false}, "::ffff:10.1.2.3": {true, true},
		"fe80::1": {false, false}, "fd00::1": {true, true}, "0.0.0.0": {false, false}, "fe80::1%eth0": {false, false},
		"fd00:ec2::254": {false, true}, "fd20:ce::254": {false, true}, "168.63.129.16": {false, false}, "100.100.100.200": {false, false},
		"192.0.0.192": {false, false},
	} {
		parsed := netip.MustParseAddr(address)
		if got := byDefault.Check(parsed) == nil; got != want.byDefault {
			t.Errorf("%s by default: %v", address, got)
		}
		if got := restricted.Check(parsed) == nil; got != want.restricted {
			t.Errorf("%s restricted: %v", address, got)
		}
	}
}

// The rules hold for the address that a name resolves to.
func TestDeniedConnection(t *testing.T) {
	server := httptest.NewServer(body("secret"))
	defer server.Close()
	for _, address := range []string{server.URL, strings.Replace(server.URL, "127.0.0.1", "localhost", 1)} {
		handler := Handler{Networks: networks(t, nil, DefaultDeny)}
		// A permitted address would be polled until the test is canceled.
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		err := handler.Discover(ctx, discovery.Request{Details: address}, func([]discovery.Device) error {
			t.Errorf("%s: a list was sent", address)
			return nil
		})
		cancel()
		if err == nil || !strings.Contains(err.Error(), "--deny-networks") {
			t.Errorf("%s: ended by %v", address, err)
		}
	}
}
