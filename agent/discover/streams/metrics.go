package streams

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts the messages of the streams.
type Metrics struct {
	messages *prometheus.CounterVec
}

// NewMetrics returns the metrics, registered with registerer.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	m := &Metrics{messages: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "akri_discovery_messages_total",
		Help: "Lists of devices received, by discovery handler.",
	}, []string{"discovery_handler_name"})}
	registerer.MustRegister(m.messages)
	return m
}

func (m *Metrics) message(handler string) { m.messages.WithLabelValues(handler).Inc() }
