package controller

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v0 "akri.sh/akri/api/v0"
)

// temporaryReconciler deletes Configurations of kubectl akri discover whose time is over. The command
// deletes its Configuration itself, unless it has been killed or has lost its connection.
type temporaryReconciler struct {
	cache  client.Reader
	client client.Client
}

func setupTemporary(mgr manager.Manager, options Options) error {
	r := &temporaryReconciler{cache: mgr.GetCache(), client: mgr.GetClient()}
	c, err := controller.New("temporary", mgr, controllerOptions(options, r))
	if err != nil {
		return err
	}
	temporary := predicate.NewTypedPredicateFuncs(func(configuration *v0.Configuration) bool {
		_, found := configuration.Labels[v0.LabelDiscoverUntil]
		return found
	})
	itself := &handler.TypedEnqueueRequestForObject[*v0.Configuration]{}
	return c.Watch(source.Kind(mgr.GetCache(), &v0.Configuration{}, itself, temporary))
}

// Reconcile deletes the Configuration, or requeues it for the end of its time. A label that is not a time is not of
// discover, so it means nothing.
func (r *temporaryReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var configuration v0.Configuration
	if err := r.cache.Get(ctx, request.NamespacedName, &configuration); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	end, err := strconv.ParseInt(configuration.Labels[v0.LabelDiscoverUntil], 10, 64)
	if err != nil || !v0.Active(&configuration) {
		return reconcile.Result{}, nil
	}
	if left := time.Until(time.Unix(end, 0)); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	this := client.Preconditions{UID: &configuration.UID}
	if err := client.IgnoreNotFound(r.client.Delete(ctx, &configuration, this)); err != nil {
		return reconcile.Result{}, fmt.Errorf("delete Configuration %s, which kubectl akri discover has left: %w", request, err)
	}
	return reconcile.Result{}, nil
}
