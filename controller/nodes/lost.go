package nodes

import (
	"slices"
	"strconv"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/jsonpatch"
	"akri.sh/akri/internal/usagepatch"
)

// Of returns the nodes that see an Instance, that hold a slot of it, or that have
// only left their label on it, sorted. An owner that cannot be parsed counts as the name
// of a node, which does not exist.
func Of(instance *v0.Instance) []string {
	nodes := append(holders(instance), instance.Spec.Nodes...)
	for label := range instance.Labels {
		if node, found := v0.NodeOfLabel(label); found {
			nodes = append(nodes, node)
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// holders returns the nodes that hold a slot, as often as they do.
func holders(instance *v0.Instance) (nodes []string) {
	for _, value := range instance.Spec.DeviceUsage {
		if value != "" {
			nodes = append(nodes, holder(value))
		}
	}
	return nodes
}

// holder returns the node that holds a slot.
func holder(value v0.SlotOwner) string {
	if owner, err := v0.ParseOwner(string(value)); err == nil {
		return owner.Node
	}
	return string(value)
}

// nodeRemoval returns the patch that removes a node from an Instance. It applies
// only to the resourceVersion that was read: anything that an agent writes in the
// meantime, above all a claim, makes it fail.
func nodeRemoval(instance *v0.Instance, node string) jsonpatch.Patch {
	patch := jsonpatch.Patch{
		jsonpatch.Test("/metadata/uid", instance.UID),
		jsonpatch.Test("/metadata/resourceVersion", instance.ResourceVersion),
	}
	if index := slices.Index(instance.Spec.Nodes, node); index >= 0 {
		patch = append(patch, jsonpatch.Remove(jsonpatch.Pointer("spec", "nodes", strconv.Itoa(index))))
	}
	label := v0.NodeLabel(node)
	if _, found := instance.Labels[label]; found {
		patch = append(patch, jsonpatch.Remove(jsonpatch.Pointer("metadata", "labels", label)))
	}
	var free []string
	for slot, value := range instance.Spec.DeviceUsage {
		if value != "" && holder(value) == node {
			free = append(free, slot)
		}
	}
	return append(patch, usagepatch.Free(instance.Spec.DeviceUsage, free)...)
}

// failingNodes returns the nodes on which discovery fails for a Configuration.
func failingNodes(configuration *v0.Configuration) (nodes []string) {
	for _, failure := range configuration.Status.DiscoveryFailures {
		nodes = append(nodes, failure.Node)
	}
	return nodes
}

// failureRemoval returns the patch that removes a node's failures from the status of a
// Configuration, if they are still where they were read. The rest of the status may
// change meanwhile: many agents write it. The API server removes the field manager of
// the node's agent together with the last field that it owns.
func failureRemoval(configuration *v0.Configuration, node string) jsonpatch.Patch {
	patch := jsonpatch.Patch{jsonpatch.Test("/metadata/uid", configuration.UID)}
	for i, failure := range slices.Backward(configuration.Status.DiscoveryFailures) {
		if failure.Node == node {
			path := jsonpatch.Pointer("status", "discoveryFailures", strconv.Itoa(i))
			patch = append(patch, jsonpatch.Test(path, failure), jsonpatch.Remove(path))
		}
	}
	return patch
}
