// Package view prints the output of the kubectl akri commands that read a cluster.
//
// Each function prints its input. The conclusions of [Why] come from a list of
// rules, one for each known problem of a device; see whyrules.go.
//
// Always: the same input gives the same output; values of Secrets are not shown.
// Never: a client, a clock.
package view
