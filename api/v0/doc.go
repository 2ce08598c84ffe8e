// Package v0 holds the records that all parts of Akri share: the kinds
// Configuration and Instance of API group akri.sh, version v0, and the names by
// which one part recognises what another has written.
//
// Read configuration_types.go (what an operator writes), instance_types.go (what
// an agent publishes), metadata.go (labels, annotations, field managers: who
// writes each, who reads it) and names.go (how an Instance gets its name).
//
// The package imports no client: it may be used by anything, also outside a
// cluster.
//
// +kubebuilder:object:generate=true
// +groupName=akri.sh
package v0
