package agent

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"

	"akri.sh/akri/agent/device"
	"akri.sh/akri/agent/discover/properties"
	"akri.sh/akri/agent/discover/publish"
	"akri.sh/akri/agent/discover/streams"
	"akri.sh/akri/agent/health"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/discovery/protocol"
	"akri.sh/akri/internal/deadline"
)

const (
	workers       = 4
	minRetryDelay = 100 * time.Millisecond
	maxRetryDelay = 30 * time.Second
	// reviewDelay is the time after which a Configuration is served at the latest if others
	// that are older have gone, or no longer served if the node has got their handler. A
	// random part keeps the agents, which learn of a Configuration together, from writing
	// together.
	reviewDelay = time.Minute
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
	reporter       *reporter
	missing        *missing
	sink           device.Sink
	registered     func(handler string) bool   // whether this node has a handler
	refusal        func(handler string) string // why a handler may not register, or ""
	log            *slog.Logger
	health         *health.Monitor
	limit          time.Duration // of a worker without progress

	queue workqueue.TypedRateLimitingInterface[types.NamespacedName]
}

func newQueue() workqueue.TypedRateLimitingInterface[types.NamespacedName] {
	return workqueue.NewTypedRateLimitingQueue(newLimiter())
}

func newLimiter() workqueue.TypedRateLimiter[types.NamespacedName] {
	return jittered{workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](minRetryDelay, maxRetryDelay)}
}

// jittered shortens delays by a random part: agents that fail together do not retry
// together.
type jittered struct {
	workqueue.TypedRateLimiter[types.NamespacedName]
}

// When implements [workqueue.TypedRateLimiter].
func (j jittered) When(name types.NamespacedName) time.Duration {
	delay := j.TypedRateLimiter.When(name)
	return delay - rand.N(delay/2)
}

// run reconciles until ctx is done.
func (r *reconciler) run(ctx context.Context) error {
	var running sync.WaitGroup
	for i := range workers {
		loop := r.health.Loop(fmt.Sprintf("reconciler %d", i), r.limit)
		running.Go(func() {
			for r.next(health.With(ctx, loop), loop) {
			}
		})
	}
	<-ctx.Done()
	r.queue.ShutDown()
	running.Wait()
	return nil
}

func (r *reconciler) next(ctx context.Context, loop *health.Loop) bool {
	name, ended := r.queue.Get()
	if ended {
		return false
	}
	loop.Beat()
	defer loop.Rest()
	defer r.queue.Done(name)
	r.log.Debug("Reconciling the Configuration", "configuration", name)
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
		r.reporter.forget(name)
		r.missing.forget(name)
		return r.withdraw(ctx, name, false)
	}
	reason, review := r.refuse(&configuration.Configuration)
	if reason != "" {
		again, err = r.turnDown(ctx, configuration, reason)
	} else {
		again, err = r.serve(ctx, configuration)
	}
	return deadline.Earliest(again, review), err
}

// serve publishes what the handlers have found for a Configuration, and returns when to call
// it again; zero means never.
func (r *reconciler) serve(ctx context.Context, configuration *cachedConfiguration) (again time.Time, err error) {
	name := keyOf(configuration)
	found := failures{node: r.node}
	complete := r.discover(&configuration.Configuration, &found)
	snapshot := r.streams.Snapshot(name)
	result, err := r.publisher.Publish(ctx, &configuration.Configuration, snapshot)
	r.sink.Publish(name, result.Devices)
	if err != nil {
		return time.Time{}, err
	}
	for _, failure := range snapshot.Failures {
		found.add(failure.Endpoint.String(), failure.Message)
	}
	for _, refused := range result.Refused {
		found.add(configuration.Spec.DiscoveryHandler.Name, refused)
	}
	next := r.addMissing(configuration, &found)
	// Before the handlers have reported, the absence of failures means nothing, except
	// that a handler that has registered is not missing.
	if len(found.list) > 0 || complete && snapshot.Settled || reportsMissing(configuration) {
		if again, err = r.reporter.report(ctx, configuration, found.sorted()); err != nil {
			return time.Time{}, err
		}
	}
	return deadline.Earliest(again, next, snapshot.Next, result.Next), nil
}

// refuse returns the reason why an existing Configuration is not served on this node, or
// "". review is when to judge again although the Configuration has not changed, because the
// node does not serve all; zero means never.
func (r *reconciler) refuse(configuration *v0.Configuration) (reason string, review time.Time) {
	if other := r.configurations.older(configuration); other != nil {
		return fmt.Sprintf("not served: Configuration %s is older, and nodes would offer devices of both as %s: rename this one",
			keyOf(other), v0.CommonResource(other.Name, configuration.Name)), time.Time{}
	}
	older, all := r.configurations.place(configuration, r.registered)
	if older >= maxServed {
		reason = fmt.Sprintf("not served: a node serves at most %d Configurations, the oldest: delete some that are not needed", maxServed)
	}
	if all > maxServed {
		review = time.Now().Add(reviewDelay - rand.N(reviewDelay/2))
	}
	return reason, review
}

// turnDown stops serving a Configuration that exists, and reports the reason. It returns
// when to call it again; zero means never.
func (r *reconciler) turnDown(ctx context.Context, configuration *cachedConfiguration, reason string) (again time.Time, err error) {
	found := failures{node: r.node}
	found.add(configuration.Spec.DiscoveryHandler.Name, reason)
	if again, err = r.withdraw(ctx, keyOf(configuration), true); err != nil {
		return time.Time{}, err
	}
	due, err := r.reporter.report(ctx, configuration, found.sorted())
	return deadline.Earliest(again, due), err
}

// addMissing adds a failure if the node lacks the Configuration's handler. It returns when
// to call it again; zero for never.
func (r *reconciler) addMissing(configuration *cachedConfiguration, found *failures) (again time.Time) {
	handler := configuration.Spec.DiscoveryHandler.Name
	registered := r.registered(handler)
	report, again := r.missing.observe(configuration, registered, time.Now())
	switch reason := r.refusal(handler); {
	case reason != "" && !registered: // whatever other nodes have found with it
		found.add(handler, reason)
	case report:
		found.add(handler, v0.MessageHandlerMissing)
	}
	return again
}

// discover sends the Configuration's request to its handlers. It returns false if the
// request is not complete.
func (r *reconciler) discover(configuration *v0.Configuration, found *failures) (complete bool) {
	gracePeriod := time.Duration(ptr.Deref(configuration.Spec.DiscoveryHandler.GracePeriodSeconds, 0)) * time.Second
	if !r.streams.Served(keyOf(configuration), configuration.Spec.DiscoveryHandler.Name, gracePeriod) {
		r.properties.Drop(keyOf(configuration)) // no node watches Secrets that it does not need
		return true
	}
	handler := configuration.Spec.DiscoveryHandler
	resolved := r.properties.Resolve(configuration)
	if resolved.Err != nil {
		found.add(handler.Name, resolved.Err.Error())
	}
	if resolved.Err != nil || resolved.Pending {
		r.streams.Discover(keyOf(configuration), handler.Name, nil)
		return false
	}
	r.streams.Discover(keyOf(configuration), handler.Name, &protocol.DiscoverRequest{
		DiscoveryDetails: handler.DiscoveryDetails, DiscoveryProperties: resolved.Properties,
	})
	return true
}

// withdraw stops serving a Configuration, whether or not it exists. It returns when to
// requeue it.
func (r *reconciler) withdraw(ctx context.Context, name types.NamespacedName, exists bool) (again time.Time, err error) {
	r.streams.Drop(name)
	r.properties.Drop(name)
	r.sink.Publish(name, nil)
	return r.publisher.Withdraw(ctx, name, exists)
}
