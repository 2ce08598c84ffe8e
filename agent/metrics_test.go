package agent

import (
	"testing"

	"akri.sh/akri/agent/discover/streams"
	"akri.sh/akri/agent/serve/deviceplugin"
	"akri.sh/akri/agent/serve/observer"
	"akri.sh/akri/internal/metricsdoc"
	"akri.sh/akri/internal/version"
)

// TestMetricsAreDocumented compares the metrics with the documentation.
func TestMetricsAreDocumented(t *testing.T) {
	recorder := metricsdoc.NewRecorder()
	recorder.MustRegister(version.NewCollector("agent"), collector{})
	streams.NewMetrics(recorder)
	recorder.MustRegister(&streams.Supervisor{}, &reporter{}, &observer.Observer{})
	if _, err := deviceplugin.NewMetrics(recorder, nil); err != nil {
		t.Fatal(err)
	}
	metricsdoc.Check(t, "../docs/metrics.md", "akri-agent", recorder)
}
