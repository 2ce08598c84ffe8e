// Package nodes removes lost nodes from Instances and Configurations, and stale
// resources from nodes.
//
// A node that is gone, or NotReady for longer than a grace period, cannot remove
// itself from the Instances that it sees. This package removes it and frees its
// slots (reconciler.go: how; outage.go: when; lost.go: what), and removes the failures
// that the agent of a deleted node has reported from Configurations. An Instance without
// nodes is deleted after a grace period of its own (unseen.go). Nodes that take no Pods
// become the last of an Instance, so that brokers use others (order.go). The kubelet never
// removes a resource from its node's status, it only sets it to 0: staleresources.go does.
//
// Always: a change applies only to the resourceVersion, or to the failures, that it
// was decided on, so an agent that returns at the same time loses nothing. A node that exists is
// removed only from Instances that no Pod bound to it uses. While nodes are Ready
// and Instances do not change, no requests are sent.
//
// Never: removes a node on stale data (it is re-read first); fights an agent that
// re-adds its node (it backs off instead); touches the entry of another vendor, or
// one that is not 0.
package nodes
