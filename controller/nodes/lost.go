package nodes

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	v0 "akri.sh/akri/api/v0"
)

// Action is what to do about an Instance on which a lost node is.
type Action string

// The actions.
const (
	Keep    Action = "Keep"    // the node stays on it
	TakeOff Action = "TakeOff" // remove the node's entry and label, free its slots
	Delete  Action = "Delete"  // nobody else can ever see the device
)

// decide says what to do about an Instance when a node has been lost for long
// enough.
func decide(instance *v0.Instance, node string, used bool) Action {
	on := nodesOf(instance)
	switch {
	case instance.DeletionTimestamp != nil, !slices.Contains(on, node), used:
		return Keep
	case !instance.Spec.Shared && len(on) == 1:
		return Delete
	}
	return TakeOff
}

// nodesOf are the nodes that see an Instance and those that hold a slot of it,
// sorted. What cannot be read is nobody's.
func nodesOf(instance *v0.Instance) []string {
	on := slices.Clone(instance.Spec.Nodes)
	for _, value := range instance.Spec.DeviceUsage {
		if owner, err := v0.ParseOwner(string(value)); err == nil && !owner.Free() {
			on = append(on, owner.Node)
		}
	}
	slices.Sort(on)
	return slices.Compact(on)
}

// operation is one of a JSON Patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// takeOff is the patch that takes a node off an Instance. It applies to the very
// version of the Instance that was read: whatever an agent writes at the same
// moment, a claim above all, makes it fail.
func takeOff(instance *v0.Instance, node string) []operation {
	patch := []operation{
		{"test", "/metadata/uid", instance.UID},
		{"test", "/metadata/resourceVersion", instance.ResourceVersion},
	}
	if at := slices.Index(instance.Spec.Nodes, node); at >= 0 {
		path := "/spec/nodes/" + strconv.Itoa(at)
		patch = append(patch, operation{"test", path, node}, operation{Op: "remove", Path: path})
	}
	label := v0.NodeLabel(node)
	if _, labelled := instance.Labels[label]; labelled {
		patch = append(patch, operation{Op: "remove", Path: "/metadata/labels/" + pointer(label)})
	}
	for _, slot := range slices.Sorted(maps.Keys(instance.Spec.DeviceUsage)) {
		value := instance.Spec.DeviceUsage[slot]
		if owner, err := v0.ParseOwner(string(value)); err == nil && owner.Node == node {
			path := "/spec/deviceUsage/" + pointer(slot)
			patch = append(patch, operation{"test", path, value}, operation{"replace", path, ""})
		}
	}
	return patch
}

// pointer escapes a key for a JSON Pointer (RFC 6901).
func pointer(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}
