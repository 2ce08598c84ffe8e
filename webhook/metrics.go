package webhook

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

var expirationDescription = prometheus.NewDesc("akri_webhook_certificate_expiration_timestamp_seconds",
	"When the certificate that this replica serves expires, in seconds since 1970.", nil, nil)

// Metrics collects the webhook's own metrics. Until [Serve] has read a certificate, there
// are none.
type Metrics struct {
	certificates atomic.Pointer[certwatcher.CertWatcher]
}

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(to chan<- *prometheus.Desc) { to <- expirationDescription }

// Collect implements [prometheus.Collector].
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	certificates := m.certificates.Load()
	if certificates == nil {
		return
	}
	certificate, err := certificates.GetCertificate(nil)
	if err != nil || certificate == nil || certificate.Leaf == nil {
		return
	}
	to <- prometheus.MustNewConstMetric(expirationDescription, prometheus.GaugeValue, float64(certificate.Leaf.NotAfter.Unix()))
}
