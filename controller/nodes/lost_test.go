package nodes

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
)

// device returns an Instance "cam" of the Configuration "cams" on nodes, with the
// owners of its slots 0, 1 and so on.
func device(shared bool, nodes []string, owners ...string) *v0.Instance {
	instance := &v0.Instance{
		ObjectMeta: metav1.ObjectMeta{Name: "cam", UID: "u", ResourceVersion: "7", Labels: map[string]string{}},
		Spec:       v0.InstanceSpec{ConfigurationName: "cams", Shared: shared, Nodes: nodes},
	}
	for _, node := range nodes {
		instance.Labels[v0.NodeLabel(node)] = ""
	}
	for slot, owner := range owners {
		if instance.Spec.DeviceUsage == nil {
			instance.Spec.DeviceUsage = map[string]v0.SlotOwner{}
		}
		instance.Spec.DeviceUsage[v0.SlotName("cam", slot)] = v0.SlotOwner(owner)
	}
	return instance
}

func TestNodeRemoval(t *testing.T) {
	remove := func(path string) string { return `{"op":"remove","path":"` + path + `","value":null}` }
	free := func(slot, owner string) string {
		path := "/spec/deviceUsage/" + slot
		return `{"op":"test","path":"` + path + `","value":"` + owner + `"},` + remove(path)
	}
	const label = "/metadata/labels/node.akri.sh~1a"
	for name, tc := range map[string]struct {
		instance *v0.Instance
		node     string
		want     []string
	}{
		"entry and label": {device(true, []string{"b", "a"}), "a", []string{remove("/spec/nodes/1"), remove(label)}},
		"slots": {device(true, []string{"a"}, "a", "b", "C:0:a", "C:cams-1:a", "", "C:a:b"), "a", []string{
			remove("/spec/nodes/0"), remove(label), free("cam-0", "a"), free("cam-2", "C:0:a"), free("cam-3", "C:cams-1:a"),
		}},
		"an owner that cannot be read": {device(true, []string{"b"}, "b", "x:y/z"), "x:y/z", []string{free("cam-1", "x:y/z")}},
	} {
		got := string(nodeRemoval(tc.instance, tc.node).Encode())
		want := `[{"op":"test","path":"/metadata/uid","value":"u"},{"op":"test","path":"/metadata/resourceVersion","value":"7"},` +
			strings.Join(tc.want, ",") + "]"
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
}

func TestNodesOf(t *testing.T) {
	instance, long := device(true, []string{"c", "b"}, "", "a", "C:0:d", "b", "not:a-node"), strings.Repeat("n", 64)
	instance.Labels[v0.NodeLabel("e")], instance.Labels[v0.NodeLabel(long)] = "", ""
	if got, want := Of(instance), []string{"a", "b", "c", "d", "e", "not:a-node"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q: the digest of a name is not a name", got, want)
	}
}
