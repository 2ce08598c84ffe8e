// Package instances is the agent's only copy of the Instances of its node.
//
// A [Store] is an informer of the Instances with this node's label, and of the
// answers to the agent's own requests that the watch has not shown yet. Its
// readers therefore always see what this agent wrote.
//
// An Instance disappears from the watch when it is deleted, but also when it loses
// this node's label because the node has left it. The watch shows both as a
// deletion, so the Store reads the Instance once to distinguish them. An Instance that
// was deleted and created again while the watch was interrupted appears as an update;
// its readers get the deletion all the same.
//
// Always: the latest version wins, whether it comes from the watch or from a
// response; resourceVersions are compared as KEP-5504 defines it. Never: a write.
package instances
