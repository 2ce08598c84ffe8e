// Package install tests the chart on a real cluster with two nodes, as an operator uses
// it: install, test, upgrade, roll back, uninstall, install again. Meanwhile devices come
// and go, Pods use their slots, and the API server's audit log records every write.
//
// Reading order: install_test.go is the story, step by step; broker_test.go is what must
// not change while it goes on; load_test.go is what happens meanwhile. sticks_test.go does
// what a page tells a newcomer to do.
//
// Always: the charts/helm package, which is Helm's own code, carries out each step. Never:
// a step that ends without the proof that Akri still works.
package install
