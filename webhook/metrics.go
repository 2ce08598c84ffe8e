package webhook

import (
	"crypto/tls"

	"github.com/prometheus/client_golang/prometheus"
)

var expirationDescription = prometheus.NewDesc("akri_webhook_certificate_expiration_timestamp_seconds",
	"When the certificate that this replica serves expires, in seconds since 1970.", nil, nil)

// Metrics collects the webhook's own metrics. Until there is a certificate, there are none.
type Metrics struct {
	certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error) // set by [Serve]
}

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(to chan<- *prometheus.Desc) { to <- expirationDescription }

// Collect implements [prometheus.Collector].
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	if m.certificate == nil {
		return
	}
	certificate, err := m.certificate(nil)
	if err != nil || certificate == nil || certificate.Leaf == nil {
		return
	}
	to <- prometheus.MustNewConstMetric(expirationDescription, prometheus.GaugeValue, float64(certificate.Leaf.NotAfter.Unix()))
}
