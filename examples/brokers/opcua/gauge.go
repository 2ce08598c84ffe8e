package main

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// gauge is a metric that is missing while its value is unknown: a stale value would look
// like a real one. It is safe for concurrent use.
type gauge struct {
	value, up *prometheus.Desc

	mu     sync.Mutex
	latest float64
	ok     bool
}

func newGauge(name, server, node string) *gauge {
	labels := prometheus.Labels{"server": server, "node": node}
	return &gauge{
		value: prometheus.NewDesc(name, "The value of the node.", nil, labels),
		up:    prometheus.NewDesc("opcua_up", "Whether the value can be read.", nil, labels),
	}
}

// set sets the value; ok is false if it is unknown.
func (g *gauge) set(value float64, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.latest, g.ok = value, ok
}

func (g *gauge) get() (value float64, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.latest, g.ok
}

// Describe implements [prometheus.Collector].
func (g *gauge) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- g.value
	descriptions <- g.up
}

// Collect implements [prometheus.Collector].
func (g *gauge) Collect(metrics chan<- prometheus.Metric) {
	value, ok := g.get()
	up := 0.0
	if ok {
		up = 1
		metrics <- prometheus.MustNewConstMetric(g.value, prometheus.GaugeValue, value)
	}
	metrics <- prometheus.MustNewConstMetric(g.up, prometheus.GaugeValue, up)
}
