package nodes

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/jsonpatch"
)

// order returns the nodes of an Instance as brokers choose them: the first ones, as many as
// the device has slots. If one of these takes no Pods and holds no slot, while a later one
// takes Pods, all that cannot run a broker go to the end. A node that returns moves nothing.
func order(instance *v0.Instance, open func(node string) bool) []string {
	nodes := instance.Spec.Nodes
	chosen := nodes[:min(int(instance.Spec.Capacity), len(nodes))]
	if !instance.Spec.Shared || len(chosen) == len(nodes) {
		return nodes
	}
	holders := holders(instance)
	keeps := func(node string) bool {
		return open(node) || slices.Contains(chosen, node) && slices.Contains(holders, node)
	}
	moves := func(node string) bool { return !keeps(node) }
	if !slices.ContainsFunc(chosen, moves) || !slices.ContainsFunc(nodes[len(chosen):], open) {
		return nodes
	}
	return append(slices.DeleteFunc(slices.Clone(nodes), moves), slices.DeleteFunc(slices.Clone(nodes), keeps)...)
}

// reorder orders the nodes of Instances.
func (r *reconciler) reorder(ctx context.Context, instances []v0.Instance) error {
	var errs []error
	opens := map[string]bool{}
	open := func(name string) bool {
		if _, known := opens[name]; !known {
			node, err := readNode(ctx, r.cache, name)
			errs = append(errs, err)
			opens[name] = node == nil || takesPods(node) // one that is gone is removed soon
		}
		return opens[name]
	}
	for i := range instances {
		instance := &instances[i]
		ordered := order(instance, open)
		if slices.Equal(ordered, instance.Spec.Nodes) {
			continue
		}
		err := r.client.Patch(ctx, instance.DeepCopy(), rawPatch(jsonpatch.Patch{
			jsonpatch.Test("/metadata/resourceVersion", instance.ResourceVersion), // or a claim may have been written
			jsonpatch.Replace("/spec/nodes", ordered),
		}), owner)
		if err = explainConflict(err); err != nil { // a change of the status alone is a conflict, too, and causes no event here
			errs = append(errs, fmt.Errorf("move nodes of Instance %s: %w", client.ObjectKeyFromObject(instance), err))
			continue
		}
		log.FromContext(ctx).Info("Moved nodes that take no Pods to the end of spec.nodes", "instance", instance.Name, "nodes", ordered)
	}
	return errors.Join(errs...)
}
