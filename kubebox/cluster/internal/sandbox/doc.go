// Package sandbox sets up the kernel objects that a cluster needs: namespaces, mounts,
// a bridge with veth pairs, and cgroups.
//
// Everything created here except cgroups lives in namespaces and is removed with the
// last process in them. Cgroups are named after the cluster, so that any process that
// knows the name can remove them.
//
// Never: runs a program.
package sandbox
