// Package instances is the agent's only copy of the Instances of its node.
//
// A [Store] is an informer of the Instances with this node's label, and of the
// answers to the agent's own requests that the watch has not shown yet. Its
// readers therefore always see what this agent wrote.
//
// An Instance disappears from the watch when it is deleted and also when it loses
// this node's label: the node has left it. The watch shows both as a deletion, so
// the Store reads the Instance once to tell them apart.
//
// Always: a version that is later than the watch's wins; versions are compared as
// Kubernetes defines it (KEP-5504). Never: a write.
package instances
