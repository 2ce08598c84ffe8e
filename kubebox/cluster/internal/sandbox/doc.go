// Package sandbox holds what a cluster needs of the Linux kernel: namespaces,
// mounts, a bridge with virtual cables, and control groups.
//
// Everything made here but the control groups lives in namespaces and ends with
// the last process in them. Control groups are named after the cluster, so that
// whoever knows the name can remove them. No program is run for any of it.
package sandbox
