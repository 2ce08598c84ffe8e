// Package v0 contains the v0 API of group akri.sh: the kinds Configuration and
// Instance, and the names, labels and annotations that the components of Akri share.
//
// Start with configuration_types.go (written by users), instance_types.go (written by
// agents), metadata.go (labels, annotations and field managers: who writes and who
// reads them) and names.go (how Instances are named).
//
// Always: names depend only on their arguments, so that all components agree on them.
// Never: a client; any program may use this package.
//
// +kubebuilder:object:generate=true
// +groupName=akri.sh
package v0
