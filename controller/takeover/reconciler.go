package takeover

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/backoff"
)

// maxDelay limits the back-off for a finalizer that keeps coming back.
const maxDelay = time.Hour

// reconciler reconciles the objects of one kind. It has one worker, so its state needs
// no lock.
type reconciler struct {
	cache   client.Reader
	api     client.Reader // not cached: the cache has no managed fields
	client  client.Client
	options Options
	now     func() time.Time
	create  func() client.Object
	seen    map[types.NamespacedName]*traces
}

// traces is what the reconciler remembers about an object with traces of Akri.
type traces struct {
	uid types.UID
	// finalizers and labels are since when the object has finalizers that may be Akri's,
	// and nodes without a label; zero if it has none.
	finalizers, labels time.Time
	// attempts is how often finalizers were removed, or found not to be Akri's.
	attempts int
}

// Reconcile removes finalizers of Akri from an object, and adds missing labels to an
// Instance, when they are due.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := r.create()
	if err := r.cache.Get(ctx, request.NamespacedName, object); err != nil {
		delete(r.seen, request.NamespacedName)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	now := r.now()
	known := r.seen[request.NamespacedName]
	if known == nil || known.uid != object.GetUID() {
		known = &traces{uid: object.GetUID()}
	}
	r.seen[request.NamespacedName] = known

	since(&known.finalizers, mayHaveFinalizer(object), now)
	instance, _ := object.(*v0.Instance)
	since(&known.labels, instance != nil && len(unlabeledNodes(instance)) > 0, now)
	if *known == (traces{uid: known.uid}) {
		delete(r.seen, request.NamespacedName)
		return reconcile.Result{}, nil
	}
	if wait := known.finalizersDue(r.options).Sub(now); !known.finalizers.IsZero() && wait <= 0 {
		if err := r.removeFinalizers(ctx, request.NamespacedName, known); err != nil {
			return reconcile.Result{}, err
		}
		known.finalizers = time.Time{} // the next event starts again
	}
	if !known.labels.IsZero() && !known.labels.Add(r.options.LabelDelay).After(now) {
		if err := r.addLabels(ctx, instance); err != nil {
			return reconcile.Result{}, err
		}
		known.labels = time.Time{}
	}
	return reconcile.Result{RequeueAfter: known.next(r.options, now)}, nil
}

// since sets when a condition began to hold, or resets it.
func since(at *time.Time, holds bool, now time.Time) {
	switch {
	case !holds:
		*at = time.Time{}
	case at.IsZero():
		*at = now
	}
}

func (t *traces) finalizersDue(options Options) time.Time {
	return t.finalizers.Add(backoff.Delay(options.FinalizerDelay, maxDelay, t.attempts))
}

// next returns the delay before something is due; 0 if nothing is.
func (t *traces) next(options Options, now time.Time) time.Duration {
	var next time.Duration
	for _, due := range []struct{ since, at time.Time }{
		{t.finalizers, t.finalizersDue(options)}, {t.labels, t.labels.Add(options.LabelDelay)},
	} {
		if wait := max(due.at.Sub(now), time.Millisecond); !due.since.IsZero() && (next == 0 || wait < next) {
			next = wait
		}
	}
	return next
}

// removeFinalizers removes the finalizers of an object that are Akri's.
func (r *reconciler) removeFinalizers(ctx context.Context, name types.NamespacedName, known *traces) error {
	object := r.create()
	if err := r.api.Get(ctx, name, object); err != nil {
		return client.IgnoreNotFound(err)
	}
	known.attempts++
	found := finalizersOfAkri(object)
	if len(found) == 0 {
		return nil // another client's: it is looked at again when the object changes, with increasing back-off
	}
	patch := client.RawPatch(types.JSONPatchType, finalizerRemoval(object, found).Encode())
	if err := r.client.Patch(ctx, r.named(name), patch, client.FieldOwner(v0.FieldManagerController)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("remove the finalizers %q of Akri from %s: %w", found, name, err))
	}
	log.FromContext(ctx).Info("Removed finalizers of the original Akri", "finalizers", found)
	return nil
}

// addLabels adds the labels of the nodes that an Instance names and that exist. Package
// nodes removes the others.
func (r *reconciler) addLabels(ctx context.Context, instance *v0.Instance) error {
	labels := map[string]string{}
	for _, node := range unlabeledNodes(instance) {
		if len(content.IsPathSegmentName(node)) > 0 {
			continue // somebody wrote it into the Instance
		}
		err := r.cache.Get(ctx, types.NamespacedName{Name: node}, &corev1.Node{})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read node %s: %w", node, err)
		}
		if err == nil {
			labels[v0.NodeLabel(node)] = ""
		}
	}
	if len(labels) == 0 {
		return nil
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": instance.UID, "labels": labels}})
	if err != nil {
		return err
	}
	name := client.ObjectKeyFromObject(instance)
	if err := r.client.Patch(ctx, r.named(name), client.RawPatch(types.MergePatchType, data),
		client.FieldOwner(v0.FieldManagerController)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("add the labels of nodes to Instance %s: %w", name, err))
	}
	log.FromContext(ctx).Info("Added the labels of nodes to an Instance, so that their agents see it", "labels", labels)
	return nil
}

// named returns an object for a request that only needs its name.
func (r *reconciler) named(name types.NamespacedName) client.Object {
	object := r.create()
	object.SetNamespace(name.Namespace)
	object.SetName(name.Name)
	return object
}
