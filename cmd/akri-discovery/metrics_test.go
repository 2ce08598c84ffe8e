package main

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"akri.sh/akri/discovery/monitor"
	"akri.sh/akri/internal/metricsdoc"
	"akri.sh/akri/internal/version"
)

// TestMetricsAreDocumented compares the metrics with the documentation.
func TestMetricsAreDocumented(t *testing.T) {
	recorder := metricsdoc.NewRecorder()
	monitor.New(recorder)
	recorder.MustRegister(version.NewCollector("discovery"))
	metricsdoc.Check(t, "../../docs/metrics.md", "akri-discovery", recorder)
}

func TestProbes(t *testing.T) {
	registry := prometheus.NewRegistry()
	monitor.New(registry)
	registered := false
	metrics := serveAnywhere(t, metricsHandler(registry))
	probes := serveAnywhere(t, probeHandler(func() bool { return registered }))
	if code, text := get(t, probes, "/healthz"); code != http.StatusOK {
		t.Errorf("/healthz: %d %s", code, text)
	}
	if code, text := get(t, probes, "/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(text, "not registered") {
		t.Errorf("/readyz before the registration: %d %s", code, text)
	}
	registered = true
	if code, text := get(t, probes, "/readyz"); code != http.StatusOK {
		t.Errorf("/readyz: %d %s", code, text)
	}
	if code, text := get(t, metrics, "/metrics"); code != http.StatusOK || !strings.Contains(text, "akri_handler_devices 0") {
		t.Errorf("/metrics: %d %s", code, text)
	}
}

// get returns the response of a server.
func get(t *testing.T, address, path string) (code int, text string) {
	t.Helper()
	response, err := http.Get("http://" + address + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// freeAddress returns an address at which nothing is served.
func freeAddress(t *testing.T) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer free.Close()
	return free.Addr().String()
}

// serveAnywhere serves a handler at a free address until the end of the test.
func serveAnywhere(t *testing.T, handler http.Handler) string {
	t.Helper()
	address := freeAddress(t)
	stop, err := serveHTTP("--flag", address, handler)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return address
}
