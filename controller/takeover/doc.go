// Package takeover finishes what agents of the original Akri left on Configurations
// and Instances.
//
// Those agents add a finalizer named after their node to everything that they see, and
// only an agent of Akri on that node removes it. This package removes it
// (finalizers.go). Agents of this project watch only the Instances with their node's
// label. An Instance that names a node without its label gets the label, so that the
// node's agent learns of a device that left between the two agents (labels.go).
// setup.go decides when.
//
// Always: a finalizer is removed only if managedFields says that an agent of Akri
// applied it. While no object has traces of Akri, no requests are sent.
//
// Never: fights an agent of Akri that is still running and adds its finalizer again: the
// delay doubles each time, up to an hour. Decides about devices, nodes or slots, which
// belongs to the agents.
package takeover
