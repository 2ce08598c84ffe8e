// Package build makes the executables and images of the test clusters from Go
// modules: Kubernetes and etcd (module e2e/kubernetes), containerd, runc and CNI
// plugins (module e2e/runtime), and a few small programs of this module.
//
// [All] goes through the steps of steps.go. A step whose inputs, Go version and
// results are those of the last time is skipped, so a second run takes a moment.
// The first one takes some minutes and tells what it is doing.
//
// All executables but runc are static. runc needs a C compiler, and libseccomp
// to filter system calls; runc.go has what to do without.
package build
