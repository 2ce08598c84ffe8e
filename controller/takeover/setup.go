package takeover

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
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
)

// Defaults of [Options].
const (
	// DefaultFinalizerDelay lets an agent of Akri that still runs clean up first.
	DefaultFinalizerDelay = 10 * time.Second
	// DefaultLabelDelay lets agents that have just started find their devices: they set
	// the label themselves.
	DefaultLabelDelay = 30 * time.Second
)

// Options are the delays; 0 is the default.
type Options struct {
	// FinalizerDelay is how long a finalizer of Akri is left alone. It doubles each
	// time that an agent of Akri adds a finalizer again.
	FinalizerDelay time.Duration
	// LabelDelay is how long an Instance may name a node without its label.
	LabelDelay time.Duration
}

// Setup adds the package's controllers to a manager whose scheme has Akri's kinds and
// nodes.
func Setup(mgr manager.Manager, options Options) error {
	options.FinalizerDelay = cmp.Or(options.FinalizerDelay, DefaultFinalizerDelay)
	options.LabelDelay = cmp.Or(options.LabelDelay, DefaultLabelDelay)
	if err := setup(mgr, options, "takeover-configuration", func() *v0.Configuration { return &v0.Configuration{} },
		func(configuration *v0.Configuration) bool { return mayHaveFinalizer(configuration) }); err != nil {
		return fmt.Errorf("set up the take-over of Configurations: %w", err)
	}
	if err := setup(mgr, options, "takeover-instance", func() *v0.Instance { return &v0.Instance{} },
		func(instance *v0.Instance) bool {
			return mayHaveFinalizer(instance) || len(unlabeledNodes(instance)) > 0
		}); err != nil {
		return fmt.Errorf("set up the take-over of Instances: %w", err)
	}
	return nil
}

// setup adds a controller for the objects of a kind that have traces of Akri.
func setup[T client.Object](mgr manager.Manager, options Options, name string, create func() T, traced func(T) bool) error {
	c, err := controller.New(name, mgr, controller.Options{
		Reconciler: &reconciler{
			cache: mgr.GetCache(), api: mgr.GetAPIReader(), client: mgr.GetClient(), options: options, now: time.Now,
			create: func() client.Object { return create() }, seen: map[types.NamespacedName]*traces{},
		},
		MaxConcurrentReconciles: 1,         // the reconciler has state without a lock
		SkipNameValidation:      new(true), // tests run several managers in one process
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](200*time.Millisecond, 5*time.Minute),
	})
	if err != nil {
		return err
	}
	relevant := predicate.TypedFuncs[T]{ // and every deletion
		CreateFunc: func(e event.TypedCreateEvent[T]) bool { return traced(e.Object) },
		UpdateFunc: func(e event.TypedUpdateEvent[T]) bool { return traced(e.ObjectOld) || traced(e.ObjectNew) },
	}
	return c.Watch(source.Kind(mgr.GetCache(), create(), &handler.TypedEnqueueRequestForObject[T]{}, relevant))
}
