package nodes

import (
	"cmp"
	"fmt"
	"time"
)

// Defaults of [Options].
const (
	// DefaultNotReadyGrace equals the time after which Kubernetes evicts Pods
	// from a node that is not Ready, unless they tolerate more.
	DefaultNotReadyGrace = 5 * time.Minute
	// DefaultGoneGrace lets a kubelet register its node again.
	DefaultGoneGrace = 30 * time.Second
	// DefaultEmptyGrace equals the time for which agents keep a shared device
	// that is no longer discovered.
	DefaultEmptyGrace = 5 * time.Minute
	// DefaultStaleDelay collects the resources of many devices into one request.
	DefaultStaleDelay = 30 * time.Second
)

// Options are the grace periods.
type Options struct {
	// NotReadyGrace is how long a node may be NotReady before it is removed from
	// its Instances. 0: nodes are never removed, and Instances without nodes are
	// kept.
	NotReadyGrace time.Duration
	// GoneGrace is how long a Node object may be missing before the node is
	// removed from its Instances. 0: the default, or NotReadyGrace if that is
	// shorter.
	GoneGrace time.Duration
	// EmptyGrace is how long an Instance may have no nodes before it is deleted.
	// 0: the default, or NotReadyGrace if that is shorter.
	EmptyGrace time.Duration
	// StaleDelay is how long a node's status keeps the first resource whose Instance
	// or Configuration was deleted. Others go with it. 0: the default.
	StaleDelay time.Duration
}

// complete returns the options with defaults for zero values.
func (o Options) complete() (Options, error) {
	if min(o.NotReadyGrace, o.GoneGrace, o.EmptyGrace, o.StaleDelay) < 0 {
		return o, fmt.Errorf("grace periods of nodes: %+v: negative duration: want 0 or more", o)
	}
	o.GoneGrace = cmp.Or(o.GoneGrace, min(DefaultGoneGrace, o.NotReadyGrace))
	o.EmptyGrace = cmp.Or(o.EmptyGrace, min(DefaultEmptyGrace, o.NotReadyGrace))
	o.StaleDelay = cmp.Or(o.StaleDelay, DefaultStaleDelay)
	return o, nil
}

// keepsInstances reports whether Instances are never changed.
func (o Options) keepsInstances() bool { return o.NotReadyGrace == 0 }
