package main

import (
	"testing"

	"akri.sh/akri/internal/metricsdoc"
)

// The metrics of the controller are compared in its package.
func TestWebhookMetricsAreDocumented(t *testing.T) {
	recorder := metricsdoc.NewRecorder()
	if _, err := registerWebhookMetrics(recorder); err != nil {
		t.Fatal(err)
	}
	metricsdoc.Check(t, "../../docs/metrics.md", "The webhook", recorder)
}
