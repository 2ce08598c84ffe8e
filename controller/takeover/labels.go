package takeover

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/nodes"
)

// unlabeledNodes returns the names of nodes that see an Instance or have a slot of it, as it
// says, although it does not have their label. If they exist, their agents do not know the Instance.
func unlabeledNodes(instance *v0.Instance) []string {
	if instance.DeletionTimestamp != nil {
		return nil
	}
	return slices.DeleteFunc(nodes.Of(instance), func(node string) bool {
		_, labeled := instance.Labels[v0.NodeLabel(node)]
		return labeled || node == ""
	})
}

// addLabels adds the labels of the nodes that an Instance names and that exist. Package
// nodes removes the others.
func (c clients) addLabels(ctx context.Context, instance *v0.Instance) error {
	name := client.ObjectKeyFromObject(instance)
	if err := c.cache.Get(ctx, name, instance); err != nil {
		return client.IgnoreNotFound(err)
	}
	labels := map[string]string{}
	for _, node := range unlabeledNodes(instance) {
		if len(content.IsPathSegmentName(node)) > 0 {
			continue // somebody wrote it into the Instance
		}
		err := c.cache.Get(ctx, types.NamespacedName{Name: node}, &corev1.Node{})
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
	err = c.client.Patch(ctx, instance, client.RawPatch(types.MergePatchType, data), client.FieldOwner(v0.FieldManagerController))
	if err != nil {
		return client.IgnoreNotFound(fmt.Errorf("add the labels of nodes to Instance %s: %w", name, err))
	}
	log.FromContext(ctx).Info("Added the labels of nodes to an Instance, so that their agents see it", "labels", labels)
	return nil
}
