package monitor

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the metrics of a handler. A nil *Metrics counts nothing, so that a handler
// can be used without them. It is safe for concurrent use.
type Metrics struct {
	devices  prometheus.Gauge
	requests prometheus.Gauge
	changes  *prometheus.CounterVec
	scans    prometheus.Histogram
	failures *prometheus.CounterVec
}

// New returns the metrics of a handler, which it registers.
func New(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		devices: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "akri_handler_devices", Help: "Devices found, over all requests of agents.",
		}),
		requests: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "akri_handler_requests", Help: "Open requests of agents, one for each Configuration.",
		}),
		changes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "akri_handler_device_changes_total", Help: "Devices that appeared, disappeared or changed, by change.",
		}, []string{"change"}),
		scans: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "akri_handler_scan_duration_seconds", Help: "Duration of scans, such as a probe of the network or a walk of sysfs.",
			Buckets: []float64{.001, .005, .02, .1, .5, 1, 2, 5, 10, 30},
		}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "akri_handler_failures_total", Help: "Failures, by reason.",
		}, []string{"reason"}),
	}
	registry.MustRegister(m.devices, m.requests, m.changes, m.scans, m.failures)
	return m
}

// Scanned records a scan that has ended.
func (m *Metrics) Scanned(began time.Time) {
	if m != nil {
		m.scans.Observe(time.Since(began).Seconds())
	}
}

// Failed counts a failure. The reason is one of few constants, in snake case, such as
// "timeout", that docs/metrics.md explains.
func (m *Metrics) Failed(reason string) {
	if m != nil {
		m.failures.WithLabelValues(reason).Inc()
	}
}
