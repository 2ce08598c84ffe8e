package nodes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/jsonpatch"
)

// takesPods reports whether a node runs Pods that are created now. Of its taints, those of
// its state count: brokers may tolerate others.
func takesPods(node *corev1.Node) bool {
	state, _ := stateOf(node)
	return state == Ready && !node.Spec.Unschedulable && !slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return strings.HasPrefix(taint.Key, "node.kubernetes.io/") && taint.Effect != corev1.TaintEffectPreferNoSchedule
	})
}

// order returns the nodes of an Instance as brokers choose them: the first ones, as many as
// the device has slots. If one of these takes no Pods and holds no slot, while a later one
// takes Pods, all that cannot run a broker go to the end. A node that returns moves nothing.
func order(instance *v0.Instance, closed map[string]bool) []string {
	nodes := instance.Spec.Nodes
	chosen := nodes[:min(int(instance.Spec.Capacity), len(nodes))]
	open := func(node string) bool { return !closed[node] }
	keeps := func(node string) bool {
		return open(node) || slices.Contains(chosen, node) && slices.Contains(holders(instance), node)
	}
	moves := func(node string) bool { return !keeps(node) }
	if !instance.Spec.Shared || !slices.ContainsFunc(chosen, moves) || !slices.ContainsFunc(nodes[len(chosen):], open) {
		return nodes
	}
	return append(slices.DeleteFunc(slices.Clone(nodes), moves), slices.DeleteFunc(slices.Clone(nodes), keeps)...)
}

// reorder orders the nodes of the Instances that a node sees which takes no Pods, or took none.
func (r *reconciler) reorder(ctx context.Context, name string, node *corev1.Node) error {
	closed := node != nil && !takesPods(node)
	if _, was := r.closed[name]; !was && !closed || r.options.keepsInstances() {
		return nil
	}
	r.closed[name] = closed
	instances, errs := r.instancesOn(ctx, name)
	for i := range instances {
		ordered := order(&instances[i], r.closed)
		if slices.Equal(ordered, instances[i].Spec.Nodes) {
			continue
		}
		err := r.patch(ctx, &instances[i], jsonpatch.Patch{
			jsonpatch.Test("/metadata/resourceVersion", instances[i].ResourceVersion), // or a claim may have been written
			jsonpatch.Replace("/spec/nodes", ordered),
		})
		if err != nil { // also if only the status has changed meanwhile, of which no event comes here
			errs = errors.Join(errs, fmt.Errorf("move nodes of Instance %s: %w", instances[i].Name, err))
			continue
		}
		log.FromContext(ctx).Info("Moved nodes that take no Pods to the end", "instance", instances[i].Name, "nodes", ordered)
	}
	if errs == nil && !closed {
		delete(r.closed, name)
	}
	return errs
}
