package takeover

import (
	"slices"

	v0 "akri.sh/akri/api/v0"
)

// unlabeledNodes returns the nodes that an Instance says see it, or have a slot of it,
// although it does not have their label. Their agents do not know the Instance.
func unlabeledNodes(instance *v0.Instance) []string {
	if instance.DeletionTimestamp != nil {
		return nil
	}
	var nodes []string
	add := func(node string) {
		if _, labeled := instance.Labels[v0.NodeLabel(node)]; !labeled && node != "" {
			nodes = append(nodes, node)
		}
	}
	for _, node := range instance.Spec.Nodes {
		add(node)
	}
	for _, value := range instance.Spec.DeviceUsage {
		if owner, err := v0.ParseOwner(string(value)); err == nil {
			add(owner.Node)
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}
