package main

import (
	"testing"

	"github.com/spf13/pflag"

	"akri.sh/akri/internal/metricsdoc"
	"akri.sh/akri/webhook/server"
)

// The metrics of the controller are compared in its package.
func TestWebhookMetricsAreDocumented(t *testing.T) {
	recorder := metricsdoc.NewRecorder()
	if err := registerWebhookMetrics(recorder, &server.Server{}); err != nil {
		t.Fatal(err)
	}
	metricsdoc.Check(t, "../../docs/metrics.md", "The webhook", recorder)
}

// By default only the Pod itself, and with it a port-forward, reaches the metrics of the
// controller and of the webhook. Kubelets reach the probes.
func TestMetricsAreServedOnLoopback(t *testing.T) {
	var addresses addressFlags
	addresses.register(pflag.NewFlagSet("", pflag.ContinueOnError))
	if addresses.metrics != "127.0.0.1:8080" || addresses.probes != ":8081" {
		t.Errorf("metrics are served at %s, probes at %s", addresses.metrics, addresses.probes)
	}
}
