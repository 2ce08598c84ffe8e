// Package runtime pins the container runtime of the clusters: containerd with its
// shim and ctr, runc, and two CNI plugins. Nothing imports it; its go.mod lists the
// versions from which package build compiles the commands.
//
// It is a module of its own because containerd requires newer versions of shared
// dependencies than Kubernetes was tested with.
package runtime
