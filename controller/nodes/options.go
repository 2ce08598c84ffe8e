package nodes

import (
	"cmp"
	"fmt"
	"time"
)

// Defaults of the [Options].
const (
	// DefaultNotReadyGrace is as long as Kubernetes leaves Pods on a node that
	// is not Ready, unless they say otherwise.
	DefaultNotReadyGrace = 5 * time.Minute
	// DefaultGoneGrace lets a kubelet register its node anew.
	DefaultGoneGrace = 30 * time.Second
	// DefaultEmptyGrace is as long as agents keep a shared device of which they
	// hear nothing.
	DefaultEmptyGrace = 5 * time.Minute
	// DefaultDeadDelay gathers the resources of many devices into one request,
	// and lets a device come back under its name.
	DefaultDeadDelay = 30 * time.Second
)

// Options say how long to wait before something is given up.
type Options struct {
	// NotReadyGrace is how long a node may be not Ready before it is taken off
	// its Instances. 0: nodes are never taken off, and Instances without nodes
	// stay.
	NotReadyGrace time.Duration
	// GoneGrace is how long a Node object may be missing before. 0: the default,
	// or NotReadyGrace if that is shorter.
	GoneGrace time.Duration
	// EmptyGrace is how long an Instance may have no node before it is deleted.
	// 0: the default, or NotReadyGrace if that is shorter.
	EmptyGrace time.Duration
	// DeadDelay is how long an entry of a node's status stays after nothing has
	// its name any more. 0: the default.
	DeadDelay time.Duration
}

// complete fills in the defaults.
func (o Options) complete() (Options, error) {
	if min(o.NotReadyGrace, o.GoneGrace, o.EmptyGrace, o.DeadDelay) < 0 {
		return o, fmt.Errorf("a grace of nodes is negative (%+v): want 0 or more", o)
	}
	o.GoneGrace = cmp.Or(o.GoneGrace, min(DefaultGoneGrace, o.NotReadyGrace))
	o.EmptyGrace = cmp.Or(o.EmptyGrace, min(DefaultEmptyGrace, o.NotReadyGrace))
	o.DeadDelay = cmp.Or(o.DeadDelay, DefaultDeadDelay)
	return o, nil
}

// keepsInstances tells that nodes and Instances stay whatever happens.
func (o Options) keepsInstances() bool { return o.NotReadyGrace == 0 }
