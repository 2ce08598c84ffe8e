// Package cli holds what every command of kubectl-akri shares: streams, exit codes
// and the way a wrong call is reported.
//
// Always: results go to stdout, everything else to stderr. Never: a cluster, a file.
package cli
