package controller

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/converge"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/templates"
)

// readAgain is the shortest delay before a parent is read again while the cache does not have its
// latest status. The delay grows with the time since that status was written, because a watch that
// lags has enough to do.
const readAgain = 5 * time.Millisecond

// parentReconciler is what the reconcilers of Instances and Configurations share.
type parentReconciler struct {
	*memory
	cache  cache.Cache
	client *apply.Client // acts as the controller
	events eventRecorder
}

// parentKind is where Instances and Configurations differ.
type parentKind interface {
	// read reads a parent, from caches only.
	read(ctx context.Context, name types.NamespacedName) (*pass, error)
	// execute renders, plans and applies. If the Outcome is pending, there is nothing to
	// report.
	execute(ctx context.Context, p *pass) (converge.Outcome, error)
	// judge returns the conditions and further fields of the status after an Outcome.
	judge(ctx context.Context, p *pass, outcome converge.Outcome) ([]metav1.Condition, map[string]any, error)
}

// pass is what a reconcile of one parent works with.
type pass struct {
	parent        ownership.Parent
	object        client.Object
	configuration *v0.Configuration    // that the parent belongs to or is; nil if there is none
	instance      *v0.Instance         // nil for a Configuration
	compiled      *templates.Templates // of the Configuration, once they are rendered
	group         *group               // of a Configuration that is not being deleted
	// stored is the status that the API server has. base is what the plan starts from: the
	// same, or one that waits to be written, or is not yet complete.
	stored, base status
	history      *converge.History
}

// status is the controller's part of the status of a parent.
type status struct {
	Conditions []metav1.Condition
	Resources  []v0.ResourceStatus
	Fields     map[string]any // the other fields, by their names in JSON
}

// reconcile brings the objects of a parent, given by its name, to what its Configuration
// specifies.
func (r *parentReconciler) reconcile(ctx context.Context, kind parentKind, named ownership.Parent) (reconcile.Result, error) {
	// 1. Read.
	p, err := kind.read(ctx, named.NamespacedName)
	if apierrors.IsNotFound(err) {
		r.forget(ctx, named)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	if r.observe(ctx, p.parent, p.configuration) {
		return reconcile.Result{RequeueAfter: converge.FirstRetry}, nil // until then, its predecessor's objects are in the way
	}
	known := r.get(p.parent)
	if known.awaits(p.object.GetResourceVersion()) {
		return reconcile.Result{RequeueAfter: max(readAgain, time.Since(known.written)/2)}, nil
	}
	p.history = known.history
	if p.base = p.stored; known.held != nil {
		p.base = *known.held
	}

	// 2. Render; 3. plan; 4. apply.
	outcome, err := kind.execute(ctx, p)
	switch {
	case err == nil && outcome.Pending: // the watch requeues it when it has synced
		r.keep(p, outcome.Resources)
	case err == nil:
		// 5. Report what has changed.
		err = r.report(ctx, kind, p, &outcome)
	}
	if errors.Is(err, apply.ErrGone) { // its deletion is an event of its own
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: outcome.RequeueAfter}, nil
}

// request returns the request to converge the objects of a parent, without any object.
func (r *parentReconciler) request(ctx context.Context, p *pass) converge.Request {
	return converge.Request{
		Account:   account(p.configuration),
		Templates: p.compiled,
		Kinds:     r.get(ownership.ConfigurationParent(p.configuration)).kinds,
		Record: func(resources []v0.ResourceStatus) error {
			p.base.Resources = resources
			if err := r.write(ctx, p, p.base); err != nil {
				return err
			}
			p.stored = p.base
			return nil
		},
	}
}

// teardown removes what garbage collection does not remove with a parent.
func (r *parentReconciler) teardown(ctx context.Context, p *pass, account types.NamespacedName) converge.Outcome {
	if !slices.Contains(p.object.GetFinalizers(), v0.FinalizerCleanup) {
		return converge.Outcome{Pending: true} // garbage collection removes everything
	}
	return r.converger.Finalize(ctx, p.parent, account, p.base.Resources, p.history, r.get(p.parent).orphans)
}

// account returns the ServiceAccount that acts for a Configuration and its
// Instances; empty for the controller itself.
func account(configuration *v0.Configuration) types.NamespacedName {
	if configuration == nil || configuration.Spec.ServiceAccountName == "" {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: configuration.Namespace, Name: configuration.Spec.ServiceAccountName}
}
