package observer

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	monitor "akri.sh/akri/agent/health"
	"akri.sh/akri/agent/serve/kubelet"
	"akri.sh/akri/agent/serve/slots"
	"akri.sh/akri/internal/kubeversion"
)

// listInterval is the time between the two lists that are needed without the Pods API:
// right after the kubelet starts, its list is empty.
const listInterval = time.Second

// Lister reads the kubelet's list; see [kubelet.Lister].
type Lister interface {
	List(ctx context.Context) (kubelet.Listing, error)
	Close() error
}

// Pods reads the kubelet's Pods API; see [kubelet.Pods].
type Pods interface {
	Available() bool
	Watch(ctx context.Context, to kubelet.PodEvents) error
	Close() error
}

// Observer observes slots through the kubelet and the Pods of the node.
type Observer struct {
	lister Lister
	pods   Pods
	api    apiPods
	log    *slog.Logger

	byKubelet, byAPI *store
	changed          chan struct{} // capacity 1
	source           *podSource
	health           *health
	resync           time.Duration // resyncInterval
	beforeList       func(context.Context)
}

// New returns an observer for a node whose kubelet has the given root directory. The
// client is used only if the kubelet does not serve the Pods API.
func New(kubeletDir, node string, client rest.Interface, log *slog.Logger, metrics *Metrics) (*Observer, error) {
	lister, err := kubelet.NewLister(kubeletDir)
	if err != nil {
		return nil, err
	}
	pods, err := kubelet.NewPods(kubeletDir)
	if err != nil {
		return nil, errors.Join(err, lister.Close())
	}
	return NewFrom(lister, pods, node, client, log, metrics), nil
}

// NewFrom returns an observer that reads the kubelet's list and Pods as given.
func NewFrom(lister Lister, pods Pods, node string, client rest.Interface, log *slog.Logger, metrics *Metrics) *Observer {
	changed := make(chan struct{}, 1)
	return &Observer{
		lister: lister, pods: pods, api: apiPods{client, node}, log: log,
		byKubelet: newStore(changed), byAPI: newStore(changed), changed: changed,
		source: newSource(!pods.Available()), resync: resyncInterval, health: &health{log: log, metrics: metrics},
		beforeList: func(context.Context) {},
	}
}

// BeforeList sets a function that each list of the kubelet waits for. Call it before Run.
func (o *Observer) BeforeList(wait func(context.Context)) { o.beforeList = wait }

// Heartbeat sets the loop that is stuck while the kubelet does not show which slots are in
// use. Call it before Run.
func (o *Observer) Heartbeat(loop *monitor.Loop) { o.health.loop = loop }

// Changed returns a channel that signals changes of Pods that request Akri's
// resources.
func (o *Observer) Changed() <-chan struct{} { return o.changed }

// Run watches the node's Pods until ctx is done: through the kubelet's Pods API if
// it serves that, otherwise through the API server.
func (o *Observer) Run(ctx context.Context) {
	o.report() // a kubelet may never show its Pods
	if byAPI, _ := o.source.current(); byAPI {
		o.log.Info("The kubelet has no Pods API; using the node's Pods of the API server", "consequence", kubeversion.WithoutPodsAPI)
	}
	var running sync.WaitGroup
	running.Go(func() { o.followKubelet(ctx) })
	running.Go(func() { o.followAPI(ctx) })
	running.Wait()
	_ = o.lister.Close() // only to end its goroutines
	_ = o.pods.Close()
}

// Observe returns which IDs containers have. own are the IDs through which this node
// owns slots, sorted; if all of them are listed, nothing else is read. Without the Pods
// API, an ID that is not listed takes a second.
func (o *Observer) Observe(ctx context.Context, own []slots.Use) (Observation, error) {
	defer o.report()
	first, err := o.list(ctx)
	if err != nil {
		return Observation{}, err
	}
	if listed := account([]kubelet.Listing{first}, nil); listed.complete(own) {
		return listed, nil
	}
	if byAPI, _ := o.source.current(); !byAPI {
		pods, trusted := o.byKubelet.snapshot()
		switch {
		case !trusted:
			return undecided(own, first), nil
		case !covers(pods, first):
			return incomplete(own, first, pods), nil
		}
		return account([]kubelet.Listing{first}, pods), nil
	}
	// The watch may be behind, which is no reason for a request while it shows a Pod
	// that may have the ID.
	if pods, trusted := o.byAPI.snapshot(); trusted {
		if seen := account([]kubelet.Listing{first}, pods); !seen.frees(own) {
			return seen, nil
		}
	}
	select {
	case <-ctx.Done():
		return Observation{}, ctx.Err()
	case <-time.After(listInterval):
	}
	second, err := o.list(ctx)
	if err != nil {
		return Observation{}, err
	}
	_, err = o.api.list(ctx, o.byAPI)
	o.health.readPods(err)
	if err != nil {
		return undecided(own, second), nil
	}
	pods, _ := o.byAPI.snapshot()
	return account([]kubelet.Listing{first, second}, pods), nil
}

// list reads the kubelet's list.
func (o *Observer) list(ctx context.Context) (kubelet.Listing, error) {
	o.beforeList(ctx)
	listing, err := o.lister.List(ctx)
	if ctx.Err() == nil {
		o.health.readList(err)
	}
	return listing, err
}

// report updates the metric.
func (o *Observer) report() {
	switch byAPI, _ := o.source.current(); {
	case byAPI:
		o.health.report(apiServer, o.byAPI.isTrusted())
	default:
		o.health.report(podsAPI, o.byKubelet.isTrusted())
	}
}
