package agent_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"akri.sh/akri/agent"
	"akri.sh/akri/internal/kubeversion"
)

// TestAgentRefusesAnOldAPIServer uses a server that answers like an API server too old
// to be built.
func TestAgentRefusesAnOldAPIServer(t *testing.T) {
	config := serveVersion(t, "v1.29.3")
	n := (&world{t: t, config: config}).node("n")
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	err := agent.RunWithSink(ctx, agent.Options{
		NodeName: "n", HandlersDir: n.directory, KubeletDir: n.directory, MetricsAddress: "0",
		Config: config, Logger: slog.New(slog.DiscardHandler),
	}, n.sink)
	if _, refused := errors.AsType[*kubeversion.TooOldError](err); !refused || !strings.Contains(err.Error(), "v1.29.3") {
		t.Errorf("got %v", err)
	}
}

// serveVersion serves only the version of an API server, until the test ends.
func serveVersion(t *testing.T, version string) *rest.Config {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/version" {
			http.NotFound(w, r)
			return
		}
		_, _ = fmt.Fprintf(w, `{"gitVersion": %q}`, version)
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL, QPS: -1}
}
