// Package clustertest runs clusters in Go tests.
//
//	func TestMain(m *testing.M) { clustertest.Main(m) }
//
//	func TestPodGetsItsDevice(t *testing.T) {
//		c := clustertest.Shared(t, cluster.Config{Nodes: 2})
//		...
//	}
//
// Where no cluster can run, a test is skipped, and reports what is missing and how to
// get it. With AKRI_E2E_REQUIRED=1, as in CI, it fails instead. A failed test keeps the
// logs of its cluster as artifacts. A test that calls [Full] is skipped unless AKRI_FULL is
// set.
//
// Always: a cluster is stopped at the end of its test, or of the test run if it is
// shared. Never: a test that passes although a component exited by itself.
package clustertest
