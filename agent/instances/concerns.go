package instances

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v0 "akri.sh/akri/api/v0"
)

// differ reports whether a change matters to an agent. The status, which the controller
// writes, does not. The generation changes with the spec.
func differ(before, after *v0.Instance) bool {
	return before.Generation != after.Generation || !maps.Equal(before.Labels, after.Labels) || metadataDiffers(before, after)
}

func metadataDiffers(before, after *v0.Instance) bool {
	return before.UID != after.UID || before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		!maps.Equal(before.Annotations, after.Annotations) ||
		!slices.EqualFunc(before.OwnerReferences, after.OwnerReferences, func(a, b metav1.OwnerReference) bool {
			return a.UID == b.UID && ptr.Deref(a.Controller, false) == ptr.Deref(b.Controller, false)
		})
}

// concerns reports whether a change concerns who publishes the devices of a node. Most
// changes are claims of slots, or other nodes that join and leave, and each would cost a pass
// over all devices of the Configuration. They concern a node that is not listed, because it
// has lost the device: when its last slot is free, it leaves the selection or deletes the
// Instance. The others see who is the author, and what that says. If the watch was interrupted,
// it may deliver two changes as one, and the second may have reverted what this node wrote.
func concerns(before, after *v0.Instance, node string) bool {
	if after.Generation > before.Generation+1 || !slices.Contains(before.Spec.Nodes, node) || !slices.Contains(after.Spec.Nodes, node) {
		return true
	}
	for _, label := range []string{v0.LabelConfiguration, v0.NodeLabel(node)} {
		if before.Labels[label] != after.Labels[label] {
			return true
		}
	}
	old, now := before.Spec, after.Spec
	old.DeviceUsage, now.DeviceUsage = nil, nil
	old.Nodes, now.Nodes = old.Nodes[:1], now.Nodes[:1]
	return metadataDiffers(before, after) || !equality.Semantic.DeepEqual(old, now)
}
