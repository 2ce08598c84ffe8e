// Package cli holds what all commands of kubectl-akri share: streams, exit codes and
// usage errors.
//
// Always: results go to stdout, everything else to stderr. Never: a cluster, a file.
package cli
