package version

import "github.com/prometheus/client_golang/prometheus"

// NewCollector returns a collector of the metric that tells the version of a running
// component: controller, webhook, agent or discovery.
func NewCollector(component string) prometheus.Collector {
	gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "akri_build_info", Help: "The version of this program; the value is 1.",
	}, []string{"component", "version", "commit", "go_version"})
	info := Get()
	gauge.WithLabelValues(component, info.Version, info.Commit, info.Go).Set(1)
	return gauge
}
