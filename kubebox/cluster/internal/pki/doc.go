// Package pki makes the certificates and kubeconfigs of one cluster.
//
// An [Authority] signs everything; its key never leaves the cluster's own
// directory, and nothing it signs outlives a year. Standard library only.
package pki
