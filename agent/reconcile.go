package agent

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"akri.sh/akri/agent/device"
	"akri.sh/akri/agent/discover/properties"
	"akri.sh/akri/agent/discover/publish"
	"akri.sh/akri/agent/discover/streams"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/discovery/protocol"
)

const (
	workers       = 4
	minRetryDelay = 100 * time.Millisecond
	maxRetryDelay = 30 * time.Second
)

// reconciler reconciles the Instances of a Configuration with what its discovery
// handlers report. Events only queue the Configuration; each reconciliation reads
// the whole state again.
type reconciler struct {
	node           string
	configurations *configurations
	properties     *properties.Watcher
	streams        *streams.Supervisor
	publisher      *publish.Publisher
	reporter       reporter
	sink           device.Sink
	log            *slog.Logger

	queue workqueue.TypedRateLimitingInterface[types.NamespacedName]

	mu sync.Mutex
	// offered are the devices last published to the sink.
	offered map[types.NamespacedName][]device.Device
}

func newQueue() workqueue.TypedRateLimitingInterface[types.NamespacedName] {
	return workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](minRetryDelay, maxRetryDelay))
}

// run reconciles until ctx is done.
func (r *reconciler) run(ctx context.Context) error {
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for r.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	r.queue.ShutDown()
	running.Wait()
	return nil
}

func (r *reconciler) next(ctx context.Context) bool {
	name, ended := r.queue.Get()
	if ended {
		return false
	}
	defer r.queue.Done(name)
	again, err := r.reconcile(ctx, name)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		r.log.Warn("Reconciliation failed; retrying", "configuration", name, "err", err)
		r.queue.AddRateLimited(name)
	default:
		r.queue.Forget(name)
		if !again.IsZero() {
			r.queue.AddAfter(name, time.Until(again))
		}
	}
	return true
}

// reconcile reconciles a Configuration, and returns when to requeue it; zero means
// never.
func (r *reconciler) reconcile(ctx context.Context, name types.NamespacedName) (again time.Time, err error) {
	configuration := r.configurations.get(name)
	if configuration == nil {
		return time.Time{}, r.withdraw(ctx, name)
	}
	if older := r.configurations.older(configuration); older != nil {
		found := failures{node: r.node}
		found.add(configuration.Spec.DiscoveryHandler.Name, fmt.Sprintf(
			"not served: Configuration %s is older and has the same name, and resource names are per node: rename this one", keyOf(older)))
		if err := r.withdraw(ctx, name); err != nil {
			return time.Time{}, err
		}
		return time.Time{}, r.reporter.report(ctx, configuration, found.sorted())
	}

	found := failures{node: r.node}
	complete := r.discover(configuration, &found)
	snapshot := r.streams.Snapshot(name)
	result, err := r.publisher.Publish(ctx, configuration, snapshot)
	r.offer(name, result.Devices)
	if err != nil {
		return time.Time{}, err
	}
	for _, failure := range snapshot.Failures {
		found.add(failure.Endpoint.String(), failure.Message)
	}
	for _, refused := range result.Refused {
		found.add(configuration.Spec.DiscoveryHandler.Name, refused)
	}
	// Before the handlers have reported, the absence of failures means nothing.
	if len(found.list) > 0 || complete && snapshot.Settled {
		if err := r.reporter.report(ctx, configuration, found.sorted()); err != nil {
			return time.Time{}, err
		}
	}
	if err := r.publisher.Complete(ctx, name); err != nil {
		return time.Time{}, err
	}
	return earliest(snapshot.Next, result.Next), nil
}

// discover sends the Configuration's request to its handlers. It returns false if the
// request is not complete.
func (r *reconciler) discover(configuration *v0.Configuration, found *failures) (complete bool) {
	handler := configuration.Spec.DiscoveryHandler
	resolved := r.properties.Resolve(configuration)
	if resolved.Err != nil {
		found.add(handler.Name, resolved.Err.Error())
	}
	if resolved.Err != nil || resolved.Pending {
		r.streams.Hold(keyOf(configuration), handler.Name)
		return false
	}
	r.streams.Discover(keyOf(configuration), streams.Request{Handler: handler.Name, Message: &protocol.DiscoverRequest{
		DiscoveryDetails: handler.DiscoveryDetails, DiscoveryProperties: resolved.Properties,
	}})
	return true
}

// withdraw stops serving a Configuration.
func (r *reconciler) withdraw(ctx context.Context, name types.NamespacedName) error {
	r.streams.Drop(name)
	r.properties.Drop(name)
	r.offer(name, nil)
	return r.publisher.Withdraw(ctx, name)
}

// offer publishes a Configuration's devices to the sink if they have changed.
func (r *reconciler) offer(name types.NamespacedName, devices []device.Device) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if reflect.DeepEqual(r.offered[name], devices) {
		return
	}
	if len(devices) == 0 {
		delete(r.offered, name)
	} else {
		r.offered[name] = devices
	}
	r.sink.Publish(name, devices)
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
