package agent_test

import (
	"bytes"
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

// TestWhatAVersionLacksIsLoggedOnce checks the log of an agent whose API server has a
// version that Akri runs on, but was not tested with.
func TestWhatAVersionLacksIsLoggedOnce(t *testing.T) {
	for version, want := range map[string]string{
		"v1.31.4": `because="Kubernetes v1.31.4 is older than v1.34, the oldest that Akri has been tested with" see=` + kubeversion.Page,
		"v1.36.3": "",
	} {
		var log bytes.Buffer
		if err := agent.AwaitAPIServer(t.Context(), serveVersion(t, version), slog.New(slog.NewTextHandler(&log, nil))); err != nil {
			t.Errorf("%s: %v", version, err)
		}
		if !strings.Contains(log.String(), `msg="The API server has answered" version=`+version) {
			t.Errorf("the version %s is not logged:\n%s", version, &log)
		}
		if lines := strings.Count(log.String(), "because="); lines != min(1, len(want)) || !strings.Contains(log.String(), want) {
			t.Errorf("%s: got\n%swant %q once", version, &log, want)
		}
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
