// Package apitest runs a real API server for tests: etcd and kube-apiserver as
// processes, with Akri's CRDs installed. `make test` provides the binaries; without
// them, such tests are skipped.
//
// [World] is what most tests need. There is no kubelet, no garbage collector and no
// other controller.
//
// Always: one API server for each test binary, unless a test starts a [Fresh] one; a namespace of its own for each test.
// Never: a name is used twice, so that what a test leaves behind disturbs no other.
package apitest
