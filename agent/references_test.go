package agent_test

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	"akri.sh/akri/discovery"
)

// transport is a http.RoundTripper.
type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(request *http.Request) (*http.Response, error) { return t(request) }

// Only the nodes that have a Configuration's handler read its Secrets.
func TestOnlyNodesWithTheHandlerReadSecrets(t *testing.T) {
	w := newWorld(t)
	var reads atomic.Int64
	counted := *w
	counted.config = rest.CopyConfig(w.config)
	counted.config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(request *http.Request) (*http.Response, error) {
			if strings.HasSuffix(request.URL.Path, "/secrets") {
				reads.Add(1)
			}
			return next.RoundTrip(request)
		})
	})
	a := counted.node("a")
	a.startAgent()
	a.startHandler(false)
	w.configure("ask", "", func(spec map[string]any) {
		spec["discoveryHandler"] = map[string]any{"name": "asker", "discoveryProperties": []any{
			map[string]any{"name": "PASSWORD", "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "login", "key": "password"}}},
		}}
	})
	w.configure("foo", "descriptions: [foo0]", nil)
	w.awaitDevices("foo0")
	if n, failures := reads.Load(), w.failures("ask"); n != 0 || len(failures) != 0 {
		t.Errorf("a node without the handler reads Secrets: %d requests, failures %v", n, failures)
	}

	a.start("asker", func(ctx context.Context) error {
		seen := make(chan map[string][]byte, 10)
		return discovery.Serve(ctx, "asker", asker{seen}, discovery.Options{Dir: a.directory, Logger: slog.New(slog.DiscardHandler)})
	})
	w.eventually("the missing Secret is reported", func() bool { return len(w.failures("ask")) == 1 })
	if reads.Load() == 0 {
		t.Error("the Secret was not read")
	}
}
