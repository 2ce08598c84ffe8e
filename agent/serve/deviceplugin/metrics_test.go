package deviceplugin

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"akri.sh/akri/agent/serve/slots"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/kubelettest"
)

// samples returns the metrics whose name has a prefix, without those that are 0.
func samples(t *testing.T, registry *prometheus.Registry, prefix string) (all []string) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, label.GetValue())
			}
			value := metric.GetGauge().GetValue() + metric.GetCounter().GetValue() + float64(metric.GetHistogram().GetSampleCount())
			if strings.HasPrefix(family.GetName(), prefix) && value > 0 {
				all = append(all, fmt.Sprintf("%s %v %v", family.GetName(), labels, value))
			}
		}
	}
	slices.Sort(all)
	return all
}

func TestGauges(t *testing.T) {
	counts := slots.Counts{
		Free: 1, Held: slots.Levels{Instance: 1, Configuration: 1}, Taken: slots.Levels{Configuration: 1},
		Conflicting: slots.Levels{Configuration: 1}, Unwritable: map[string]int{"cam": 1, "door": 0},
	}
	registry := prometheus.NewRegistry()
	m, err := NewMetrics(registry, func() (Snapshot, bool) { return Snapshot{Slots: counts, Connected: 2, Disconnected: 1}, true })
	if err != nil {
		t.Fatal(err)
	}
	m.released(v0.Owner{Node: "node-a", VirtualID: "0"}, time.Now())
	want := []string{
		"akri_agent_release_latency_seconds [configuration] 1",
		"akri_agent_resources [connected] 2",
		"akri_agent_resources [disconnected] 1",
		"akri_agent_slots [both free] 1",
		"akri_agent_slots [configuration conflicting] 1",
		"akri_agent_slots [configuration held] 1",
		"akri_agent_slots [configuration taken] 1",
		"akri_agent_slots [instance held] 1",
		"akri_agent_unwritable_instances [cam] 1",
	}
	if got := samples(t, registry, "akri_agent_"); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestScrapeOfStoppedServer checks that a scrape does not wait for a loop that has
// ended.
func TestScrapeOfStoppedServer(t *testing.T) {
	s, stop := unconnected(t, kubelettest.Start(t, kubelettest.Options{}), slog.New(slog.DiscardHandler))
	if _, found := s.scrape(); !found {
		t.Error("a running server has no state")
	}
	stop()
	if _, found := s.scrape(); found {
		t.Error("a stopped server has a state")
	}
}
