package observer

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	monitor "akri.sh/akri/agent/health"
	"akri.sh/akri/agent/serve/kubelet"
	"akri.sh/akri/agent/serve/slots"
)

// Lister reads the kubelet's list; see [kubelet.Lister].
type Lister interface {
	List(ctx context.Context) (kubelet.Listing, error)
	Close() error
}

// Options configure an [Observer].
type Options struct {
	// Node is the node's name in the API server.
	Node string
	// Lister reads the list of the node's kubelet. The observer closes it.
	Lister Lister
	// BeforeList returns when the kubelet may be listed, or when ctx is done.
	BeforeList func(ctx context.Context)
	// Client is a client of the core API, which lists and watches Pods.
	Client rest.Interface
	Log    *slog.Logger
	// Accounting is stuck while the kubelet does not show which slots are in use, so that
	// the agent is restarted if that lasts; may be nil.
	Accounting *monitor.Loop
}

// Observer observes slots through the kubelet's list and the Pods of the node. It is the
// collector of its metric.
type Observer struct {
	options Options
	pods    *nodePods
	health  *health
}

// New returns an observer, which observes nothing before it runs.
func New(options Options) *Observer {
	o := &Observer{options: options, health: &health{log: options.Log, loop: options.Accounting}}
	o.pods = newNodePods(options.Client, options.Node, func(_ context.Context, err error) { o.health.readPods(err) })
	return o
}

// Changed returns a channel that signals that a Pod that requests Akri's resources was
// created, has terminated or was deleted.
func (o *Observer) Changed() <-chan struct{} { return o.pods.changed }

// Run watches the node's Pods until ctx is done.
func (o *Observer) Run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { o.pods.informer.Run(ctx) })
	select {
	case <-o.pods.informer.Synced():
		o.pods.notify() // slots can be freed from now on
	case <-ctx.Done():
	}
	running.Wait()
	_ = o.options.Lister.Close() // only to end its goroutines
}

// Observe returns which IDs containers have. own are the IDs through which this node
// owns slots, sorted; if all of them are listed, nothing else is read.
func (o *Observer) Observe(ctx context.Context, own []slots.Use) (Observation, error) {
	o.options.BeforeList(ctx)
	listing, err := o.options.Lister.List(ctx)
	if ctx.Err() == nil {
		o.health.readList(err)
	}
	if err != nil {
		return Observation{}, err
	}
	pods := o.pods.at(listing, time.Now())
	listed := shown(listing)
	missing := listed.missing(own)
	if len(missing) == 0 {
		return listed, nil
	}
	if !o.pods.informer.HasSynced() {
		return listed.undecided(own), nil
	}
	seen := listed.account(listing, pods)
	if !slices.ContainsFunc(missing, func(use slots.Use) bool { return !slices.Contains(seen.Open, use.Resource) }) {
		return seen, nil
	}
	// A slot would be released, but the watch may be behind. What it shows of a Pod can be
	// old, but frees nothing: requests do not change, and a Pod that has terminated does not
	// run again.
	complete, err := o.pods.shows(ctx, pods)
	o.health.readPods(err)
	if !complete {
		unknown := listed.undecided(own)
		if err == nil { // the kubelet keeps the IDs of a Pod that exists
			unknown.Unreserved = seen.Unreserved
		}
		return unknown, nil
	}
	return seen, nil
}
