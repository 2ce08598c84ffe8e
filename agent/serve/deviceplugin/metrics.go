package deviceplugin

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"akri.sh/akri/agent/serve/slots"
)

// outcomes are label values.
var outcomes = map[slots.Outcome]string{slots.Written: "written", slots.Refused: "refused", slots.Unknown: "unknown"}

// Metrics of the kubelet's side. Their number does not depend on the devices.
type Metrics struct {
	claims, releases, allocations *prometheus.CounterVec
	slots                         *prometheus.GaugeVec
}

// NewMetrics registers the metrics; nil registers them nowhere.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"outcome"})
	}
	m := &Metrics{
		claims:      counter("akri_agent_claims_total", "Claims of slots by what became of them: written, refused or unknown."),
		releases:    counter("akri_agent_releases_total", "Releases of slots by what became of them: written, refused or unknown."),
		allocations: counter("akri_agent_allocations_total", "Answers to the kubelet's Allocate by outcome: granted, or why it was refused."),
		slots: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "akri_agent_slots", Help: "Slots of this node's devices: free, held by this node, taken elsewhere, or contradicted.",
		}, []string{"state"}),
	}
	if registerer == nil {
		return m, nil
	}
	var errs []error
	for _, c := range []prometheus.Collector{m.claims, m.releases, m.allocations, m.slots} {
		errs = append(errs, registerer.Register(c))
	}
	return m, errors.Join(errs...)
}

// allocation counts an answer to the kubelet.
func (m *Metrics) allocation(err error) {
	outcome := "failed"
	switch {
	case err == nil:
		outcome = "granted"
	case errors.Is(err, slots.ErrTaken):
		outcome = "taken"
	case errors.Is(err, slots.ErrDeadline):
		outcome = "deadline"
	case errors.Is(err, slots.ErrUnavailable):
		outcome = "unavailable"
	}
	m.allocations.WithLabelValues(outcome).Inc()
}

// count shows how many slots are in which state.
func (m *Metrics) count(state slots.State) {
	counts := map[string]int{"free": 0, "held": 0, "taken": 0, "contradicted": 0}
	for _, inst := range state.Instances {
		for _, s := range inst.Slots {
			switch {
			case s.Contradicted:
				counts["contradicted"]++
			case s.Owner.Free():
				counts["free"]++
			case s.Owner.Node == state.Node:
				counts["held"]++
			default:
				counts["taken"]++
			}
		}
	}
	for name, count := range counts {
		m.slots.WithLabelValues(name).Set(float64(count))
	}
}
