// Package install tests the chart on a real cluster with two nodes, as an operator uses
// it: install, test, upgrade, roll back, uninstall, install again, while brokers run.
//
// Reading order: install_test.go is the story, step by step; broker_test.go is what must
// not change while it goes on. sticks_test.go does what a page tells a newcomer to do.
//
// Always: the charts/helm package, which is Helm's own code, carries out each step. Never:
// a step that ends without the proof that Akri still works.
package install
