// Package runtime pins the container runtime that the test clusters run:
// containerd with its shim and ctr, runc, and two CNI plugins. Nothing imports
// it; its go.mod is the list of versions from which package build compiles the
// commands.
//
// It is a module of its own because containerd asks for newer versions of
// shared dependencies than Kubernetes was tested with.
package runtime
