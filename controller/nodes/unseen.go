package nodes

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/text"
)

// unseen reports whether no node sees an Instance, and no container has a slot of it.
// Without the Instance, a node could be given a slot that a container still has. The
// slots of a lost node are freed like its entry is removed.
func unseen(instance *v0.Instance) bool {
	return len(instance.Spec.Nodes) == 0 && instance.DeletionTimestamp == nil && !v0.Held(instance)
}

// unseenInstances deletes Instances that no node has seen for the grace period.
type unseenInstances struct {
	cache  client.Reader
	client client.Client
	grace  time.Duration
	events events.EventRecorder
}

// Reconcile deletes an Instance that has not been seen, nor changed otherwise, since its version
// was noticed.
func (r *unseenInstances) Reconcile(ctx context.Context, noticed version) (reconcile.Result, error) {
	var instance v0.Instance
	err := r.cache.Get(ctx, noticed.NamespacedName, &instance)
	if err != nil || versionOf(&instance) != noticed || !unseen(&instance) {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := deleteInstance(ctx, r.client, &instance); err != nil {
		return reconcile.Result{}, fmt.Errorf("delete Instance %s, which no node sees: %w", noticed.NamespacedName, err)
	}
	log.FromContext(ctx).Info("Deleted an Instance that no node sees")
	name := text.Truncate(text.OneLine(v0.DisplayName(&instance)), v0.MaxDisplayNameLength) // data from the device
	r.events.Eventf(&instance, nil, corev1.EventTypeWarning, reasonDeviceLost, "Delete",
		"no node has seen %s for %v", cmp.Or(name, "the device"), r.grace)
	return reconcile.Result{}, nil
}
