// Package build builds the executables and images of the clusters from Go modules:
// Kubernetes, etcd and CoreDNS (module kubebox/kubernetes), containerd, runc and CNI
// plugins (module kubebox/runtime), and a few small programs of this module.
//
// [All] runs the steps of steps.go. It skips a step whose inputs, Go version and
// results have not changed, so a second run takes about a second. The first run
// takes minutes and reports its progress.
//
// All executables are static, except runc and nft. runc needs a C compiler, and libseccomp
// for system call filters; see runc.go for the alternatives. nft, which kube-proxy runs, is
// not written in Go; see nftables.go.
package build
