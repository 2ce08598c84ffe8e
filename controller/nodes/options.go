package nodes

import "time"

// DefaultNotReadyGrace equals the time after which Kubernetes evicts Pods from a node that is
// not Ready, unless they tolerate more.
const DefaultNotReadyGrace = 5 * time.Minute

// Options are the grace periods.
type Options struct {
	// NotReadyGrace is how long a node may be NotReady before it is removed from
	// its Instances. 0: nodes are never removed, and Instances without nodes are
	// kept.
	NotReadyGrace time.Duration
	// GoneGrace is how long a Node object may be missing before the node is
	// removed from its Instances, so that a kubelet can register it again.
	GoneGrace time.Duration
	// EmptyGrace is how long an Instance may have no nodes before it is deleted.
	EmptyGrace time.Duration
	// StaleDelay is how long a resource of a node stays after the kubelet has set it to 0,
	// so that those of many devices are removed in one request.
	StaleDelay time.Duration
}

// DefaultOptions returns the documented grace periods. A short one for nodes that are not Ready
// shortens the others.
func DefaultOptions(notReadyGrace time.Duration) Options {
	return Options{
		NotReadyGrace: notReadyGrace, GoneGrace: min(30*time.Second, notReadyGrace),
		EmptyGrace: min(5*time.Minute, notReadyGrace), StaleDelay: 30 * time.Second,
	}
}
