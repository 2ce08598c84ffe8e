package deviceplugin

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"akri.sh/akri/agent/serve/slots"
)

// outcomes are the values of the label "outcome" for patches.
var outcomes = map[slots.Outcome]string{slots.Written: "written", slots.Refused: "refused", slots.Unknown: "unknown"}

// Metrics are the metrics of the serving half. Their cardinality does not depend on
// the devices.
type Metrics struct {
	claims, releases, allocations *prometheus.CounterVec
	slots                         *prometheus.GaugeVec
}

// NewMetrics returns the metrics, registered with registerer unless that is nil.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"outcome"})
	}
	m := &Metrics{
		claims:   counter("akri_agent_claims_total", "Claims of slots, by outcome: written, refused or unknown."),
		releases: counter("akri_agent_releases_total", "Releases of slots, by outcome: written, refused or unknown."),
		allocations: counter(
			"akri_agent_allocations_total",
			"Answers to the kubelet's Allocate, by outcome: granted, or the reason of the refusal.",
		),
		slots: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "akri_agent_slots",
			Help: "Slots of this node's devices, by state: free, held by this node, taken by another owner, or contradicted.",
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

// allocation counts an answer to the kubelet's Allocate.
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

// count sets the gauge of slots by state.
func (m *Metrics) count(c slots.Counts) {
	m.slots.WithLabelValues("free").Set(float64(c.Free))
	m.slots.WithLabelValues("held").Set(float64(c.Held))
	m.slots.WithLabelValues("taken").Set(float64(c.Taken))
	m.slots.WithLabelValues("contradicted").Set(float64(c.Contradicted))
}
