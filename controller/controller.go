package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/fight"
	"akri.sh/akri/controller/nodes"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/rollout"
	"akri.sh/akri/controller/sweep"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/controller/watch"
	"akri.sh/akri/templating"
)

// byConfiguration is the cache's index of Instances by their Configuration.
const byConfiguration = "spec.configurationName"

// groupReport is how often at most a group's status tells of its Instances.
const groupReport = time.Second

// Back-off for what could not be applied.
const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = 5 * time.Minute
)

// Setup adds the controllers to a manager whose scheme knows our kinds and whose
// cache is made from [CacheOptions].
func Setup(ctx context.Context, mgr manager.Manager, options Options) error {
	if err := options.validate(); err != nil {
		return err
	}
	clients, err := apply.NewClients(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	indexed := func(object client.Object) []string { return []string{object.(*v0.Instance).Spec.ConfigurationName} }
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v0.Instance{}, byConfiguration, indexed); err != nil {
		return fmt.Errorf("index Instances: %w", err)
	}

	parents := &parentQueues{}
	informers, err := watch.NewInformers(mgr.GetConfig(), mgr.GetHTTPClient(), parents.add)
	if err != nil {
		return err
	}
	shared := &objects{
		mapper:    mgr.GetRESTMapper(),
		informers: informers,
		clients:   clients,
		policy:    options.Policy,
		endings:   newEndings(),
		fights:    fight.NewDetector(),
		tell:      teller{recorder: mgr.GetEventRecorder(v0.FieldManagerController)},
		metrics:   newMetrics(),
	}
	compiled := templates.NewCache(options.Policy)
	if err := shared.metrics.register(options.Metrics, collector{cache: mgr.GetCache(), objects: shared, templates: compiled}); err != nil {
		return fmt.Errorf("register the metrics: %w", err)
	}
	gate := rollout.NewGate(func(instance types.NamespacedName) {
		parents.add(ownership.Parent{Level: templating.InstanceLevel, NamespacedName: instance})
	})
	if err := mgr.Add(leading(shared.informers.Run)); err != nil {
		return fmt.Errorf("add the watches: %w", err)
	}
	if err := setupInstances(mgr, options, parents, &instanceReconciler{
		cache: mgr.GetCache(), templates: compiled, objects: shared, gate: gate, said: newMemory[v0.InstanceStatus](),
	}); err != nil {
		return fmt.Errorf("set up the controller of Instances: %w", err)
	}
	if err := setupConfigurations(mgr, options, parents, &configurationReconciler{
		cache: mgr.GetCache(), templates: compiled, objects: shared, gate: gate, said: newMemory[v0.ConfigurationStatus](), sizes: newGroupSizes(),
	}); err != nil {
		return fmt.Errorf("set up the controller of Configurations: %w", err)
	}
	if err := setupSweep(mgr, options.SweepEvery); err != nil {
		return fmt.Errorf("set up the sweep: %w", err)
	}
	return nodes.Setup(ctx, mgr, nodes.Options{NotReadyGrace: options.NodeGrace})
}

// leading runs only on the leader.
type leading func(context.Context) error

func (l leading) Start(ctx context.Context) error { return l(ctx) }

func (leading) NeedLeaderElection() bool { return true }

func setupInstances(mgr manager.Manager, options Options, parents *parentQueues, r *instanceReconciler) error {
	c, err := controller.New("instance", mgr, controllerOptions(options, r))
	if err != nil {
		return err
	}
	itself := &handler.TypedEnqueueRequestForObject[*v0.Instance]{}
	rendersAnew := predicate.TypedFuncs[*v0.Instance]{UpdateFunc: func(e event.TypedUpdateEvent[*v0.Instance]) bool {
		return !sameValues(e.ObjectOld, e.ObjectNew) || (e.ObjectOld.DeletionTimestamp == nil) != (e.ObjectNew.DeletionTimestamp == nil)
	}}
	allOfGroup := handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, configuration *v0.Configuration) []reconcile.Request {
		instances, err := instancesOf(ctx, r.cache, types.NamespacedName{Namespace: configuration.Namespace, Name: configuration.Name})
		if err != nil {
			return nil // the cache is not started: the Instances' own events are to come
		}
		requests := make([]reconcile.Request, len(instances))
		for i := range instances {
			requests[i].NamespacedName = types.NamespacedName{Namespace: instances[i].Namespace, Name: instances[i].Name}
		}
		return requests
	})
	edited := predicate.TypedGenerationChangedPredicate[*v0.Configuration]{}
	return firstError(
		c.Watch(source.Kind(mgr.GetCache(), &v0.Instance{}, itself, rendersAnew)),
		c.Watch(source.Kind(mgr.GetCache(), &v0.Configuration{}, allOfGroup, edited)),
		c.Watch(parents.source(templating.InstanceLevel)),
	)
}

func setupConfigurations(mgr manager.Manager, options Options, parents *parentQueues, r *configurationReconciler) error {
	c, err := controller.New("configuration", mgr, controllerOptions(options, r))
	if err != nil {
		return err
	}
	itself := &handler.TypedEnqueueRequestForObject[*v0.Configuration]{}
	news := predicate.TypedFuncs[*v0.Configuration]{UpdateFunc: func(e event.TypedUpdateEvent[*v0.Configuration]) bool {
		return e.ObjectOld.Generation != e.ObjectNew.Generation ||
			!equality.Semantic.DeepEqual(e.ObjectOld.Status.DiscoveryFailures, e.ObjectNew.Status.DiscoveryFailures)
	}}
	ofInstance := predicate.TypedFuncs[*v0.Instance]{UpdateFunc: func(e event.TypedUpdateEvent[*v0.Instance]) bool {
		return !sameValues(e.ObjectOld, e.ObjectNew) || (e.ObjectOld.DeletionTimestamp == nil) != (e.ObjectNew.DeletionTimestamp == nil) ||
			!equality.Semantic.DeepEqual(e.ObjectOld.Status.Conditions, e.ObjectNew.Status.Conditions)
	}}
	return firstError(
		c.Watch(source.Kind(mgr.GetCache(), &v0.Configuration{}, itself, news)),
		c.Watch(source.Kind(mgr.GetCache(), &v0.Instance{}, groupOf(r.sizes), ofInstance)),
		c.Watch(source.Kind(mgr.GetCache(), definitions(), r.objects.kindsChanged(mgr.GetCache(), r.templates, parents))),
		c.Watch(parents.source(templating.ConfigurationLevel)),
	)
}

func setupSweep(mgr manager.Manager, every time.Duration) error {
	if every == 0 {
		return nil
	}
	kinds, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	names, err := metadata.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	return mgr.Add(leading(sweep.New(kinds, names, mgr.GetAPIReader(), every).Run))
}

func controllerOptions(options Options, r reconcile.Reconciler) controller.Options {
	return controller.Options{
		Reconciler:              r,
		MaxConcurrentReconciles: options.Workers,
		SkipNameValidation:      new(true), // several managers in one process, as in tests
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	}
}

// sameValues tells whether a change of an Instance leaves what is rendered for
// it as it is; claims of slots do.
func sameValues(before, after *v0.Instance) bool {
	return before.UID == after.UID &&
		before.Spec.ConfigurationName == after.Spec.ConfigurationName &&
		before.Spec.Shared == after.Spec.Shared &&
		maps.Equal(before.Spec.BrokerProperties, after.Spec.BrokerProperties) &&
		slices.Equal(before.Spec.Nodes, after.Spec.Nodes)
}

// groupOf looks at the group of an Instance, a little later, since more news may
// be on its way.
func groupOf(sizes *groupSizes) handler.TypedEventHandler[*v0.Instance, reconcile.Request] {
	add := func(instance *v0.Instance, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		group := types.NamespacedName{Namespace: instance.Namespace, Name: instance.Spec.ConfigurationName}
		queue.AddAfter(reconcile.Request{NamespacedName: group}, sizes.delay(group))
	}
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.TypedFuncs[*v0.Instance, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*v0.Instance], q queue) { add(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*v0.Instance], q queue) { add(e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*v0.Instance], q queue) { add(e.Object, q) },
	}
}

// parentQueues is how the watches of objects reach the two controllers.
type parentQueues struct {
	mutex                   sync.Mutex
	instance, configuration workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// source hands a controller's queue over when the controller starts.
func (p *parentQueues) source(level templating.Level) source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		if level == templating.InstanceLevel {
			p.instance = queue
		} else {
			p.configuration = queue
		}
		return nil
	})
}

func (p *parentQueues) add(parent ownership.Parent) {
	p.mutex.Lock()
	queue := p.configuration
	if parent.Level == templating.InstanceLevel {
		queue = p.instance
	}
	p.mutex.Unlock()
	if queue != nil { // watches are asked for by controllers, so theirs has started
		queue.Add(reconcile.Request{NamespacedName: parent.NamespacedName})
	}
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// definitions are CustomResourceDefinitions, of which only the names matter.
func definitions() *metav1.PartialObjectMetadata {
	definition := &metav1.PartialObjectMetadata{}
	definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	return definition
}
