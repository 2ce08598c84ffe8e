package streams

import "github.com/prometheus/client_golang/prometheus"

var streamsDescription = prometheus.NewDesc("akri_discovery_streams",
	"Streams from discovery handlers, by handler and state: open, refused or failing.", []string{"discovery_handler_name", "state"}, nil)

// Metrics counts the messages and the errors of the streams.
type Metrics struct {
	messages, errors *prometheus.CounterVec
}

// NewMetrics returns the metrics, registered with registerer.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	m := &Metrics{
		messages: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "akri_discovery_messages_total",
			Help: "Lists of devices handled, by discovery handler.",
		}, []string{"discovery_handler_name"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "akri_discovery_errors_total",
			Help: "Errors of discovery handlers, by handler and reason.",
		}, []string{"discovery_handler_name", "reason"}),
	}
	registerer.MustRegister(m.messages, m.errors)
	return m
}

func (m *Metrics) message(handler string) { m.messages.WithLabelValues(handler).Inc() }

func (m *Metrics) failure(handler, reason string) { m.errors.WithLabelValues(handler, reason).Inc() }

// Describe implements [prometheus.Collector].
func (s *Supervisor) Describe(to chan<- *prometheus.Desc) { to <- streamsDescription }

// Collect implements [prometheus.Collector].
func (s *Supervisor) Collect(to chan<- prometheus.Metric) {
	counts := map[string]map[string]int{}
	s.mu.Lock()
	for _, d := range s.discoveries {
		for endpoint := range d.streams {
			if counts[endpoint.Name] == nil {
				counts[endpoint.Name] = map[string]int{}
			}
			counts[endpoint.Name][d.view.State(endpoint).String()]++
		}
	}
	s.mu.Unlock()
	for handler, states := range counts {
		for _, state := range []string{current.String(), refused.String(), failing.String()} {
			to <- prometheus.MustNewConstMetric(streamsDescription, prometheus.GaugeValue, float64(states[state]), handler, state)
		}
	}
}
