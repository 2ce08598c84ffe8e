package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v0 "akri.sh/akri/api/v0"
)

// emptyResources returns the resources of Akri that are 0 on a node.
func emptyResources(node *corev1.Node) corev1.ResourceList {
	empty := corev1.ResourceList{}
	for resource, quantity := range node.Status.Capacity {
		if quantity.IsZero() && strings.HasPrefix(string(resource), v0.Domain+"/") {
			empty[resource] = quantity
		}
	}
	return empty
}

// staleResources removes resources from the status of nodes, if nothing else has changed it.
type staleResources struct {
	cache  client.Reader
	client client.Client
}

// Reconcile removes a node's resources that are 0 and have the name of no Instance or
// Configuration, all in one request.
func (r *staleResources) Reconcile(ctx context.Context, request version) (reconcile.Result, error) {
	var instances v0.InstanceList
	var configurations v0.ConfigurationList
	node, err := readNode(ctx, r.cache, request.Name)
	if err := errors.Join(err,
		r.cache.List(ctx, &instances, client.UnsafeDisableDeepCopy),
		r.cache.List(ctx, &configurations, client.UnsafeDisableDeepCopy),
	); err != nil || node == nil {
		return reconcile.Result{}, err
	}
	stale := map[string]any{} // null removes a key
	for resource := range emptyResources(node) {
		stale[string(resource)] = nil
	}
	for i := range instances.Items {
		delete(stale, v0.ResourceName(instances.Items[i].Name))
	}
	for i := range configurations.Items {
		delete(stale, v0.ResourceName(configurations.Items[i].Name))
	}
	if len(stale) == 0 {
		return reconcile.Result{}, nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": node.ResourceVersion},
		"status":   map[string]any{"capacity": stale, "allocatable": stale},
	})
	if err == nil {
		err = explainConflict(r.client.Status().Patch(ctx, node, client.RawPatch(types.MergePatchType, patch), owner))
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("remove stale resources from the status of node %s: %w", request.Name, err)
	}
	log.FromContext(ctx).Info("Removed stale resources from a node", "resources", slices.Sorted(maps.Keys(stale)))
	return reconcile.Result{}, nil
}
