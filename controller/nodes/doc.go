// Package nodes keeps Instances true to the nodes there are, and nodes true to
// the Instances there are.
//
// A node that is gone, or not Ready for longer than a grace, can no longer take
// itself off the Instances that it sees: this package does, and frees its slots
// (lost.go: what is done; outage.go: when; use.go: what forbids it). An Instance
// that no node sees any more is deleted after a grace of its own (orphan.go). The
// kubelet never removes a resource from its node's status, it only sets it to 0:
// such entries go once nothing has their name (deadresources.go). Read lost.go
// first, then reconciler.go.
//
// Always: a change is bound to the very version of the object that it was decided
// on, so that an agent which comes back at that moment loses nothing. A node that
// is in the API is off only what no Pod bound to it uses. While nodes are Ready
// and Instances stay, nothing is sent.
//
// Never: a node is taken off because the watch lags (it is read anew first); an
// agent that puts its node back is fought (it is left alone longer each time); an
// entry of another vendor, or one that is not 0, is touched.
package nodes
