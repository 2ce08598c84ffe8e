// Package monitoring tests the alert rules, the PodMonitor and the dashboards of
// config/monitoring.
//
// Reading order: sources_test.go reads the files; expressions_test.go compares their
// expressions with the metrics that exist; runbooks_test.go compares the alerts with
// docs/runbooks.md; rules_test.go runs testdata/alerts.yaml, the unit tests of the
// rules, by promtool, and series_test.go checks that Akri could export their series.
// cluster_test.go is the proof: a Prometheus scrapes Akri on a real cluster, and alerts
// fire when a part of it is taken away, and resolve when it is back.
//
// Prometheus comes from Debian's package, which is unpacked, not installed: see package
// peers.
package monitoring
