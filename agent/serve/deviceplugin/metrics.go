package deviceplugin

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"akri.sh/akri/agent/serve/slots"
	v0 "akri.sh/akri/api/v0"
)

// outcomes are the values of the label "outcome" for patches.
var outcomes = map[slots.Outcome]string{slots.Written: "written", slots.Refused: "refused", slots.Unknown: "unknown"}

// latencies are the buckets of the time until a slot is free, in seconds. The
// observation of Pods is delayed by 50 ms, and at worst 10 s after the Pod.
var latencies = []float64{0.1, 0.25, 0.5, 1, 2, 5, 10, 30}

var (
	slotsDescription = prometheus.NewDesc("akri_agent_slots",
		"Slots of this node's devices, by state: free, held by this node, taken by another node, or conflicting, "+
			"and by level: instance or configuration; free slots belong to both.", []string{"state", "level"}, nil)
	unwritableDescription = prometheus.NewDesc("akri_agent_unwritable_instances",
		"Instances whose slots this node cannot claim at present, by Configuration.", []string{"configuration"}, nil)
	resourcesDescription = prometheus.NewDesc("akri_agent_resources",
		"Resources that this node offers, by state: connected if the kubelet receives their lists, or disconnected.", []string{"state"}, nil)
)

// Metrics are the metrics of the serving half. Their cardinality does not depend on
// the devices.
type Metrics struct {
	claims, releases, allocations *prometheus.CounterVec
	releaseLatency                *prometheus.HistogramVec
}

// NewMetrics returns the metrics, registered with registerer. At each scrape, read
// returns what the gauges show.
func NewMetrics(registerer prometheus.Registerer, read func() (Snapshot, bool)) (*Metrics, error) {
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"outcome"})
	}
	m := &Metrics{
		claims:   counter("akri_agent_claims_total", "Claims of slots, by outcome: written, refused or unknown."),
		releases: counter("akri_agent_releases_total", "Releases of slots, by outcome: written, refused or unknown."),
		allocations: counter(
			"akri_agent_allocations_total",
			"Answers to the kubelet's Allocate, by outcome: granted, or the reason for the refusal.",
		),
		releaseLatency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "akri_agent_release_latency_seconds", Buckets: latencies,
			Help: "Time from the notice that a container has terminated until its slot is recorded as free, by level: instance or configuration.",
		}, []string{"level"}),
	}
	var errs []error
	for _, c := range []prometheus.Collector{m.claims, m.releases, m.allocations, m.releaseLatency, gauges{read}} {
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
	case errors.Is(err, slots.ErrFull), errors.Is(err, slots.ErrTooFew):
		outcome = "full"
	case errors.Is(err, slots.ErrNoSlot):
		outcome = "unlisted"
	case errors.Is(err, slots.ErrDeadline):
		outcome = "deadline"
	case errors.Is(err, slots.ErrUnavailable):
		outcome = "unavailable"
	}
	m.allocations.WithLabelValues(outcome).Inc()
}

// released records that a slot with an owner has become free.
func (m *Metrics) released(owner v0.Owner, since time.Time) {
	level := "instance"
	if owner.VirtualID != "" {
		level = "configuration"
	}
	m.releaseLatency.WithLabelValues(level).Observe(time.Since(since).Seconds())
}

// gauges are computed when they are scraped, so that events cost nothing.
type gauges struct{ read func() (Snapshot, bool) }

func (g gauges) Describe(to chan<- *prometheus.Desc) {
	to <- slotsDescription
	to <- unwritableDescription
	to <- resourcesDescription
}

func (g gauges) Collect(to chan<- prometheus.Metric) {
	snapshot, found := g.read()
	if !found {
		return
	}
	for state, n := range map[string]int{"connected": snapshot.Connected, "disconnected": snapshot.Disconnected} {
		to <- prometheus.MustNewConstMetric(resourcesDescription, prometheus.GaugeValue, float64(n), state)
	}
	count := func(n int, state, level string) {
		to <- prometheus.MustNewConstMetric(slotsDescription, prometheus.GaugeValue, float64(n), state, level)
	}
	count(snapshot.Slots.Free, "free", "both")
	for state, levels := range map[string]slots.Levels{
		"held": snapshot.Slots.Held, "taken": snapshot.Slots.Taken, "conflicting": snapshot.Slots.Conflicting,
	} {
		count(levels.Instance, state, "instance")
		count(levels.Configuration, state, "configuration")
	}
	for configuration, n := range snapshot.Slots.Unwritable {
		to <- prometheus.MustNewConstMetric(unwritableDescription, prometheus.GaugeValue, float64(n), configuration)
	}
}
