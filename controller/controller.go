package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/converge"
	"akri.sh/akri/controller/informers"
	"akri.sh/akri/controller/kinds"
	"akri.sh/akri/controller/nodes"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/rollout"
	"akri.sh/akri/controller/sweep"
	"akri.sh/akri/controller/takeover"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/templating"
)

// byConfiguration is the cache's index of Instances by their Configuration.
const byConfiguration = "spec.configurationName"

// Setup adds the controllers to a manager whose scheme knows Akri's kinds and whose
// cache is made from [CacheOptions].
func Setup(ctx context.Context, mgr manager.Manager, options Options) error {
	if err := options.validate(); err != nil {
		return err
	}
	indexed := func(object client.Object) []string { return []string{object.(*v0.Instance).Spec.ConfigurationName} }
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v0.Instance{}, byConfiguration, indexed); err != nil {
		return fmt.Errorf("index Instances: %w", err)
	}
	mapper, err := kinds.Of(mgr)
	if err != nil {
		return err
	}
	queues := &parentQueues{}
	watches, err := informers.New(ctx, mgr.GetConfig(), mgr.GetHTTPClient(), queues.add)
	if err != nil {
		return err
	}
	own, err := apply.NewClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	recorder := eventRecorder{mgr.GetEventRecorder(v0.FieldManagerController)}
	counters := newMetrics()
	memory := &parentMemory{
		instances:      newStatusCache[v0.InstanceStatus](),
		configurations: newStatusCache[v0.ConfigurationStatus](),
		retries:        newRetries(),
		templates:      templates.NewCache(options.Policy),
		converger: converge.New(converge.Options{
			Mapper: mapper, Informers: watches, Client: own, Policy: options.Policy,
			Observer: observer{counters, recorder},
		}),
		informers: watches,
		gate: rollout.NewGate(func(instance types.NamespacedName) {
			queues.add(ownership.Parent{Level: templating.InstanceLevel, NamespacedName: instance})
		}),
		delays: newGroupDelays(),
		kinds:  newKindsInUse(),
		queues: queues,
		seen:   map[ownership.Parent]sighting{},
	}
	if err := counters.register(options.Metrics, collector{cache: mgr.GetCache(), memory: memory}); err != nil {
		return fmt.Errorf("register the metrics: %w", err)
	}
	if err := setupInstances(mgr, options, queues, &instanceReconciler{
		parentMemory: memory, cache: mgr.GetCache(), client: own, events: recorder,
	}); err != nil {
		return fmt.Errorf("set up the Instance controller: %w", err)
	}
	if err := setupConfigurations(mgr, options, queues, &configurationReconciler{
		parentMemory: memory, cache: mgr.GetCache(), client: own, mapper: mapper, events: recorder,
	}); err != nil {
		return fmt.Errorf("set up the Configuration controller: %w", err)
	}
	if err := setupTemporary(mgr, options); err != nil {
		return fmt.Errorf("set up the controller of temporary Configurations: %w", err)
	}
	if err := setupSweep(mgr, options.SweepEvery); err != nil {
		return fmt.Errorf("set up the sweep: %w", err)
	}
	if err := nodes.Setup(ctx, mgr, nodes.DefaultOptions(options.NodeGrace)); err != nil {
		return err
	}
	return takeover.Setup(mgr, takeover.Options{})
}

func setupInstances(mgr manager.Manager, options Options, queues *parentQueues, r *instanceReconciler) error {
	c, err := controller.New("instance", mgr, controllerOptions(options, r))
	if err != nil {
		return err
	}
	see := func(instance *v0.Instance) { r.seeDeletion(ownership.InstanceParent(instance), instance.Finalizers) }
	return errors.Join(
		c.Watch(source.Kind(mgr.GetCache(), &v0.Instance{}, itself(see), rendersOrCountsDifferently)),
		c.Watch(source.Kind(mgr.GetCache(), &v0.Instance{}, observed[*v0.Instance](r.instances.observed))),
		c.Watch(source.Kind(mgr.GetCache(), &v0.Configuration{}, instancesOfGroup(r.cache), generationChanged)),
		c.Watch(queues.source(templating.InstanceLevel)),
	)
}

func setupConfigurations(mgr manager.Manager, options Options, queues *parentQueues, r *configurationReconciler) error {
	c, err := controller.New("configuration", mgr, controllerOptions(options, r))
	if err != nil {
		return err
	}
	see := func(configuration *v0.Configuration) {
		r.seeDeletion(ownership.ConfigurationParent(configuration), configuration.Finalizers)
	}
	return errors.Join(
		c.Watch(source.Kind(mgr.GetCache(), &v0.Configuration{}, itself(see), generationOrDiscoveryChanged)),
		c.Watch(source.Kind(mgr.GetCache(), &v0.Configuration{}, observed[*v0.Configuration](r.configurations.observed))),
		c.Watch(source.Kind(mgr.GetCache(), &v0.Instance{}, groupOfInstance(r.delays), valuesOrConditionsChanged)),
		c.Watch(source.Kind(mgr.GetCache(), &v0.Instance{}, r.kinds.handler())),
		c.Watch(source.Kind(mgr.GetCache(), kinds.CRD(), crdEvents(r.cache, r.mapper, r.parentMemory, queues))),
		c.Watch(queues.source(templating.ConfigurationLevel)),
	)
}

func setupSweep(mgr manager.Manager, every time.Duration) error {
	if every == 0 {
		return nil
	}
	served, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	names, err := metadata.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	return mgr.Add(manager.RunnableFunc(sweep.New(served, names, mgr.GetAPIReader(), every).Run)) // on the leader only
}

func controllerOptions(options Options, r reconcile.Reconciler) controller.Options {
	return controller.Options{
		Reconciler:              r,
		MaxConcurrentReconciles: options.Workers + 1, // one more than a namespace can keep busy
		SkipNameValidation:      new(true),           // tests run several managers in one process
		NewQueue: func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) requestQueue {
			return newFairQueue(name, limiter, options.Workers)
		},
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](converge.FirstRetry, maxRetry),
	}
}
