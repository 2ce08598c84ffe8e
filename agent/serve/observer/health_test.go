package observer

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// TestHealth checks that an outage is told once, with its cause and a remedy, that a
// restart of the kubelet is no outage, and that the metric shows the state.
func TestHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		metrics, err := NewMetrics(registry)
		if err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		h := &health{log: slog.New(slog.NewTextHandler(&log, nil)), metrics: metrics}
		refused := errors.New("connection refused")
		expect := func(when, state string, warnings int) {
			t.Helper()
			h.report(podsAPI, state != untrusted)
			if got := currentState(t, registry); got != state {
				t.Errorf("%s: state %s, want %s", when, got, state)
			}
			if got := strings.Count(log.String(), "level=WARN"); got != warnings {
				t.Errorf("%s: %d warnings, want %d\n%s", when, got, warnings, log.String())
			}
		}
		expect("before the first pods", untrusted, 0)
		for range 5 {
			h.readList(refused)
			time.Sleep(time.Second)
		}
		expect("during a restart of the kubelet", podsAPI, 0)
		h.readList(nil)
		for range 90 {
			h.readList(refused)
			time.Sleep(time.Second)
		}
		expect("during an outage", failing, 1)
		for _, part := range []string{"connection refused", "remedy="} {
			if !strings.Contains(log.String(), part) {
				t.Errorf("the warning does not contain %q: %s", part, log.String())
			}
		}
		h.readList(nil)
		expect("after the outage", podsAPI, 1)
		if !strings.Contains(log.String(), "can be read again") {
			t.Errorf("the end of the outage was not told: %s", log.String())
		}
	})
}

func currentState(t *testing.T, registry *prometheus.Registry) string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var states []string
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if metric.GetGauge().GetValue() == 1 {
				states = append(states, metric.GetLabel()[0].GetValue())
			}
		}
	}
	return strings.Join(states, " ")
}
