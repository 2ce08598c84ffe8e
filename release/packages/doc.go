// Package packages makes what people install without a cluster: packages of kubectl-akri
// and akri-discovery for Debian and for distributions with RPM, archives of kubectl-akri
// for other systems, a manifest for krew, and SHA256SUMS.
//
// Always: the same commit makes the same files, in any directory and at any time. Each
// package and archive contains the licenses of all that is linked into its program.
//
// Never: a script that runs when a package is installed.
package packages
