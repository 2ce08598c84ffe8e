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
	workers      = 4
	firstRetry   = 100 * time.Millisecond
	longestRetry = 30 * time.Second
)

// reconciler takes one Configuration at a time from what its handlers say to
// its Instances. Whatever happens only says which Configuration to look at
// again; what is to be done is always found out afresh.
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
	// offered is what the sink was last told.
	offered map[types.NamespacedName][]device.Device
}

func newQueue() workqueue.TypedRateLimitingInterface[types.NamespacedName] {
	return workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstRetry, longestRetry))
}

// run works until ctx ends.
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
		r.log.Warn("not everything could be published; trying again", "configuration", name, "err", err)
		r.queue.AddRateLimited(name)
	default:
		r.queue.Forget(name)
		if !again.IsZero() {
			r.queue.AddAfter(name, time.Until(again))
		}
	}
	return true
}

// reconcile says when to look again even if nothing happens; zero if not.
func (r *reconciler) reconcile(ctx context.Context, name types.NamespacedName) (again time.Time, err error) {
	configuration := r.configurations.get(name)
	if configuration == nil {
		return time.Time{}, r.withdraw(ctx, name)
	}
	if elder := r.configurations.elder(configuration); elder != nil {
		troubles := failures{node: r.node}
		troubles.add(configuration.Spec.DiscoveryHandler.Name, fmt.Sprintf(
			"not served: Configuration %s is older and has the same name, and names of resources are the node's: give this one another name", keyOf(elder)))
		if err := r.withdraw(ctx, name); err != nil {
			return time.Time{}, err
		}
		return time.Time{}, r.reporter.report(ctx, configuration, troubles.sorted())
	}

	troubles := failures{node: r.node}
	known := r.ask(configuration, &troubles)
	picture := r.streams.Look(name)
	result, err := r.publisher.Publish(ctx, configuration, picture)
	r.offer(name, result.Devices)
	if err != nil {
		return time.Time{}, err
	}
	for _, failure := range picture.Failures {
		troubles.add(failure.Endpoint.String(), failure.Message)
	}
	for _, refused := range result.Refused {
		troubles.add(configuration.Spec.DiscoveryHandler.Name, refused)
	}
	// An agent that has heard nothing yet cannot say that all is well.
	if len(troubles.list) > 0 || known && picture.Settled {
		if err := r.reporter.report(ctx, configuration, troubles.sorted()); err != nil {
			return time.Time{}, err
		}
	}
	if err := r.publisher.Complete(ctx, name); err != nil {
		return time.Time{}, err
	}
	return earliest(picture.Next, result.Next), nil
}

// ask has the Configuration's question asked, and tells whether it can be.
func (r *reconciler) ask(configuration *v0.Configuration, troubles *failures) (known bool) {
	handler := configuration.Spec.DiscoveryHandler
	resolved := r.properties.Resolve(configuration)
	if resolved.Err != nil {
		troubles.add(handler.Name, resolved.Err.Error())
	}
	if resolved.Err != nil || resolved.Pending {
		r.streams.Hold(keyOf(configuration), handler.Name)
		return false
	}
	r.streams.Ask(keyOf(configuration), streams.Question{Handler: handler.Name, Request: &protocol.DiscoverRequest{
		DiscoveryDetails: handler.DiscoveryDetails, DiscoveryProperties: resolved.Properties,
	}})
	return true
}

// withdraw ends all that is done for a Configuration.
func (r *reconciler) withdraw(ctx context.Context, name types.NamespacedName) error {
	r.streams.Drop(name)
	r.properties.Drop(name)
	r.offer(name, nil)
	return r.publisher.Withdraw(ctx, name)
}

// offer tells the sink of a Configuration's devices if it does not know them.
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
