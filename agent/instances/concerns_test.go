package instances

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
)

// Claims, and other nodes, cost a node no pass over the devices of a Configuration unless it
// has left the Instance and waits for them.
func TestConcerns(t *testing.T) {
	for name, tc := range map[string]struct {
		change               func(*v0.Instance)
		author, other, third bool // node-c, which is not listed, has its label
	}{
		"a claim": {func(i *v0.Instance) { i.Spec.DeviceUsage = map[string]v0.SlotOwner{"cam-0": "node-b"} }, false, false, true},
		"another node": {func(i *v0.Instance) {
			i.Spec.Nodes = append(i.Spec.Nodes, "node-d")
			i.Labels[v0.NodeLabel("node-d")] = ""
		}, false, false, true},
		"the other node has left": {func(i *v0.Instance) { i.Spec.Nodes = i.Spec.Nodes[:1] }, false, true, true},
		"the author has left":     {func(i *v0.Instance) { i.Spec.Nodes = i.Spec.Nodes[1:] }, true, true, true},
		"a property":              {func(i *v0.Instance) { i.Spec.BrokerProperties = map[string]string{"URL": "x"} }, true, true, true},
		"whether it is shared":    {func(i *v0.Instance) { i.Spec.Shared = false }, true, true, true},
		"the capacity":            {func(i *v0.Instance) { i.Spec.Capacity = 1 }, true, true, true},
		"the owner":               {func(i *v0.Instance) { i.OwnerReferences = nil }, true, true, true},
		"the device's ID":         {func(i *v0.Instance) { i.Annotations = nil }, true, true, true},
		"the author's label":      {func(i *v0.Instance) { i.Labels[v0.NodeLabel("node-a")] = "x" }, true, false, true},
		"the Configuration's":     {func(i *v0.Instance) { delete(i.Labels, v0.LabelConfiguration) }, true, true, true},
		"the deletion":            {func(i *v0.Instance) { i.DeletionTimestamp = new(metav1.Now()) }, true, true, true},
		"another Instance":        {func(i *v0.Instance) { i.UID = "next" }, true, true, true},
		"two changes at once":     {func(i *v0.Instance) { i.Generation += 2 }, true, true, true},
	} {
		before := &v0.Instance{ObjectMeta: metav1.ObjectMeta{
			Name: "cam", UID: "first", Annotations: map[string]string{v0.AnnotationDeviceID: "foo0"},
			Labels: map[string]string{v0.LabelConfiguration: "door", v0.NodeLabel("node-a"): "", v0.NodeLabel("node-b"): "",
				v0.NodeLabel("node-c"): ""},
			OwnerReferences: []metav1.OwnerReference{{UID: "configuration"}},
		}, Spec: v0.InstanceSpec{Capacity: 2, Shared: true, Nodes: []string{"node-a", "node-b"}}}
		after := before.DeepCopy()
		tc.change(after)
		for node, want := range map[string]bool{"node-a": tc.author, "node-b": tc.other, "node-c": tc.third} {
			if got := concerns(before, after, node); got != want {
				t.Errorf("%s: concerns %s: %t, want %t", name, node, got, want)
			}
		}
	}
}
