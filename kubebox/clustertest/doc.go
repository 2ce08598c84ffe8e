// Package clustertest runs clusters in Go tests.
//
//	func TestMain(m *testing.M) { clustertest.Main(m) }
//
//	func TestPodGetsItsDevice(t *testing.T) {
//		c := clustertest.Shared(t, cluster.Config{Nodes: 2})
//		...
//	}
//
// Where no cluster can run, a test skips and says what is missing and how to get
// it; with AKRI_E2E_REQUIRED=1, as in CI, it fails instead. A test that failed
// leaves the logs of its cluster among its artifacts.
package clustertest
