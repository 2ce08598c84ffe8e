// Package e2e tests Akri end to end on real clusters with real kubelets. Package
// cluster of the kubebox module starts them.
//
// Reading order: main_test.go sets up the cluster and the helpers; each other
// file covers one subject. Package akri builds and installs Akri, and cmd/demo
// is the demo.
//
// Always: each test leaves the cluster as it found it. Never: a mock of
// Kubernetes, or a test that passes because a timeout expired.
package e2e
