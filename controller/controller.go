package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
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
	"akri.sh/akri/controller/objects"
	"akri.sh/akri/controller/ownership"
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
	mapper, err := kinds.New(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	queues := parentQueues{
		templating.InstanceLevel:      newFairQueue("instance", options.Workers),
		templating.ConfigurationLevel: newFairQueue("configuration", options.Workers),
	}
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
	memory := newMemory(&converge.Converger{
		Mapper: mapper, Informers: watches, Client: own, Policy: options.Policy, Observer: observer{counters, recorder},
	}, templates.NewCache(options.Policy), queues)
	if err := counters.register(options.Metrics, collector{cache: mgr.GetCache(), informers: watches}); err != nil {
		return fmt.Errorf("register the metrics: %w", err)
	}
	parents := &parentReconciler{memory: memory, cache: mgr.GetCache(), client: own, events: recorder}
	if err := parents.setup(ctx, mgr, options.Workers, mapper); err != nil {
		return fmt.Errorf("set up the controllers: %w", err)
	}
	if err := setupSweep(mgr, options.SweepEvery); err != nil {
		return fmt.Errorf("set up the sweep: %w", err)
	}
	if err := nodes.Setup(ctx, mgr, nodes.DefaultOptions(options.NodeGrace)); err != nil {
		return err
	}
	return takeover.Setup(mgr, takeover.FinalizerDelay, takeover.LabelDelay)
}

// setup adds the controllers of Instances and of Configurations to a manager.
func (r *parentReconciler) setup(ctx context.Context, mgr manager.Manager, workers int, mapper *kinds.Mapper) error {
	add := func(name string, level templating.Level, reconciler reconcile.Reconciler, watches ...source.Source) error {
		c, err := controller.New(name, mgr, controller.Options{
			Reconciler:              reconciler,
			MaxConcurrentReconciles: workers + 1, // one more than a namespace can keep busy
			SkipNameValidation:      new(true),   // tests run several managers in one process
			NewQueue:                func(string, workqueue.TypedRateLimiter[reconcile.Request]) requestQueue { return r.queues[level] },
		})
		if err != nil {
			return err
		}
		for _, watch := range watches {
			err = errors.Join(err, c.Watch(watch))
		}
		return err
	}
	seeInstance := func(instance *v0.Instance) { r.seeDeletion(ownership.InstanceParent(instance), instance.Finalizers) }
	seeConfiguration := func(configuration *v0.Configuration) {
		r.seeDeletion(ownership.ConfigurationParent(configuration), configuration.Finalizers)
	}
	definitions := mapper.Watch(ctx, r.cache, func(resource schema.GroupResource, deleted bool) {
		r.informers.Forget(resource, deleted)
		r.requeueUsers(ctx, r.cache, resource.Group)
	})
	return errors.Join(definitions,
		add("instance", templating.InstanceLevel, instanceReconciler{r},
			source.Kind(r.cache, &v0.Instance{}, itself(seeInstance), rendersOrCountsDifferently),
			source.Kind(r.cache, &v0.Configuration{}, instancesOfGroup(r.cache), generationChanged)),
		add("configuration", templating.ConfigurationLevel, configurationReconciler{r, mapper},
			source.Kind(r.cache, &v0.Configuration{}, itself(seeConfiguration), generationOrDiscoveryChanged),
			source.Kind(r.cache, &v0.Instance{}, groupOfInstance(r.delay), valuesOrConditionsChanged)),
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
	single, err := objects.NewClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	return mgr.Add(manager.RunnableFunc(sweep.New(served, single, every).Run)) // on the leader only
}
