package takeover

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/backoff"
)

const (
	// FinalizerDelay lets an agent of Akri that still runs clean up first.
	FinalizerDelay = 10 * time.Second
	// LabelDelay lets agents that have just started find their devices: they set the label
	// themselves.
	LabelDelay = 30 * time.Second

	// maxDelay limits the back-off for a finalizer that keeps coming back.
	maxDelay = time.Hour
)

// clients are for the requests of the package.
type clients struct {
	cache, api client.Reader // the cache has no managed fields
	client     client.Client
}

// Setup adds the package's controllers to a manager whose scheme has Akri's kinds and
// nodes. A finalizer of Akri is left alone for finalizerDelay, which doubles each time that an
// agent of Akri adds one again. An Instance may name a node without its label for labelDelay.
func Setup(mgr manager.Manager, finalizerDelay, labelDelay time.Duration) error {
	c := clients{cache: mgr.GetCache(), api: mgr.GetAPIReader(), client: mgr.GetClient()}
	err := errors.Join(
		setup(mgr, "takeover-configuration", func() *v0.Configuration { return &v0.Configuration{} }, finalizerDelay, maxDelay,
			func(configuration *v0.Configuration) bool { return mayHaveFinalizer(configuration) },
			func(ctx context.Context, configuration *v0.Configuration) error {
				return c.removeFinalizers(ctx, configuration)
			}),
		setup(mgr, "takeover-instance", func() *v0.Instance { return &v0.Instance{} }, finalizerDelay, maxDelay,
			func(instance *v0.Instance) bool { return mayHaveFinalizer(instance) },
			func(ctx context.Context, instance *v0.Instance) error { return c.removeFinalizers(ctx, instance) }),
		setup(mgr, "takeover-label", func() *v0.Instance { return &v0.Instance{} }, labelDelay, labelDelay,
			func(instance *v0.Instance) bool { return len(unlabeledNodes(instance)) > 0 }, c.addLabels),
	)
	if err != nil {
		return fmt.Errorf("set up the take-over from Akri: %w", err)
	}
	return nil
}

// setup adds a controller that calls a function with each object that has traces of Akri, of
// which only the name is set, some time after they have appeared. The delay doubles with each
// call for the object, up to a limit.
func setup[T client.Object](
	mgr manager.Manager, name string, create func() T, delay, limit time.Duration,
	traced func(T) bool, remove func(context.Context, T) error,
) error {
	calls := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](delay, limit) // counts them
	c, err := controller.New(name, mgr, controller.Options{
		Reconciler: reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
			object := create()
			if err := mgr.GetCache().Get(ctx, request.NamespacedName, object); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			calls.When(request)
			return reconcile.Result{}, remove(ctx, object)
		}),
		SkipNameValidation: new(true), // tests run several managers in one process
		RateLimiter:        workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](200*time.Millisecond, 5*time.Minute),
	})
	if err != nil {
		return err
	}
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	add := func(object T, queue queue) {
		request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}
		if traced(object) {
			queue.AddAfter(request, backoff.Delay(delay, limit, calls.NumRequeues(request)))
		}
	}
	return c.Watch(source.Kind(mgr.GetCache(), create(), handler.TypedFuncs[T, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[T], queue queue) { add(e.Object, queue) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[T], queue queue) { add(e.ObjectNew, queue) },
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[T], _ queue) {
			calls.Forget(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)})
		},
	}))
}
