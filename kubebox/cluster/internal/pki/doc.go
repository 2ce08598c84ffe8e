// Package pki creates the certificates and kubeconfigs of one cluster.
//
// Always: an [Authority] signs everything, for a year at most. Never: a dependency
// outside the standard library.
package pki
