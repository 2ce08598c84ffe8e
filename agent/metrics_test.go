package agent

import (
	"testing"

	"akri.sh/akri/agent/discover/streams"
	"akri.sh/akri/agent/serve/deviceplugin"
	"akri.sh/akri/internal/metricsdoc"
)

// The metrics are those of the documentation.
func TestMetricsAreDocumented(t *testing.T) {
	recorder := metricsdoc.NewRecorder()
	recorder.MustRegister(collector{})
	streams.NewMetrics(recorder)
	if _, err := deviceplugin.NewMetrics(recorder); err != nil {
		t.Fatal(err)
	}
	metricsdoc.Check(t, "../docs/metrics.md", "akri-agent", recorder)
}
