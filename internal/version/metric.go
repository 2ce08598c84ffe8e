package version

import "github.com/prometheus/client_golang/prometheus"

// Metric is the name of the metric that tells the version of a running program.
const Metric = "akri_build_info"

// NewCollector returns a collector of Metric for a component: controller, webhook,
// agent or discovery.
func NewCollector(component string) prometheus.Collector {
	gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: Metric, Help: "The version of this program; the value is 1.",
	}, []string{"component", "version", "commit", "go_version"})
	info := Get()
	gauge.WithLabelValues(component, info.Version, info.Commit, info.Go).Set(1)
	return gauge
}
