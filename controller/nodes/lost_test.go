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

func TestDecide(t *testing.T) {
	deleting := device(true, []string{"a", "b"})
	deleting.DeletionTimestamp = &metav1.Time{}
	for name, tc := range map[string]struct {
		reason   string
		instance *v0.Instance
		used     bool
		want     Action
	}{
		"shared by two":     {"the other node still sees it", device(true, []string{"a", "b"}), false, RemoveNode},
		"shared, last node": {"another node may find it within the grace", device(true, []string{"a"}), false, RemoveNode},
		"local":             {"its name contains the node's: no other node will ever find it", device(false, []string{"a"}), false, Delete},
		"local, held here":  {"the slot is the lost node's own", device(false, []string{"a"}, "a", "C:0:a"), false, Delete},
		"local, held there": {"only an edit can cause this: the other node loses nothing", device(false, []string{"a"}, "b"), false,
			RemoveNode},
		"in use":        {"a Pod on an unreachable node may still run", device(true, []string{"a", "b"}), true, Keep},
		"local, in use": {"a Pod on an unreachable node may still run", device(false, []string{"a"}), true, Keep},
		"slot only": {"an agent leaves an Instance that it no longer sees; its slots stay held until they are freed",
			device(true, []string{"b"}, "a"), false, RemoveNode},
		"slot only, by group":  {"a claim by the Configuration's name is a claim", device(true, []string{"b"}, "C:1:a"), false, RemoveNode},
		"not on it":            {"it has been removed", device(true, []string{"b"}, "", "b"), false, Keep},
		"being deleted":        {"it is deleted anyway", deleting, false, Keep},
		"unreadable slot only": {"an owner that cannot be parsed is not this node", device(true, []string{"b"}, "x:a"), false, Keep},
		"label only":           {"its agent would remove the label", labeled(device(true, []string{"b"}), "a"), false, RemoveNode},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decide(tc.instance, "a", tc.used); got != tc.want {
				t.Errorf("%s\n got %s\nwant %s", tc.reason, got, tc.want)
			}
		})
	}
}

func TestNodeRemoval(t *testing.T) {
	const bound = `{"op":"test","path":"/metadata/uid","value":"u"},{"op":"test","path":"/metadata/resourceVersion","value":"7"}`
	const label = `{"op":"remove","path":"/metadata/labels/node.akri.sh~1a","value":null}`
	for name, tc := range map[string]struct {
		instance *v0.Instance
		want     []string
	}{
		"entry and label": {device(true, []string{"b", "a"}), []string{
			`{"op":"test","path":"/spec/nodes/1","value":"a"},{"op":"remove","path":"/spec/nodes/1","value":null}`, label,
		}},
		"slots": {device(true, []string{"a"}, "a", "b", "C:0:a", "C:cams-1:a", "", "C:a:b"), []string{
			`{"op":"test","path":"/spec/nodes/0","value":"a"},{"op":"remove","path":"/spec/nodes/0","value":null}`, label,
			`{"op":"test","path":"/spec/deviceUsage/cam-0","value":"a"},{"op":"remove","path":"/spec/deviceUsage/cam-0","value":null}`,
			`{"op":"test","path":"/spec/deviceUsage/cam-2","value":"C:0:a"},{"op":"remove","path":"/spec/deviceUsage/cam-2","value":null}`,
			`{"op":"test","path":"/spec/deviceUsage/cam-3","value":"C:cams-1:a"},{"op":"remove","path":"/spec/deviceUsage/cam-3","value":null}`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := string(nodeRemoval(tc.instance, "a").Encode())
			want := "[" + strings.Join(append([]string{bound}, tc.want...), ",") + "]"
			if got != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
		})
	}
}

func TestNodesOf(t *testing.T) {
	long := strings.Repeat("n", 64)
	got := nodesOf(labeled(device(true, []string{"c", "b"}, "", "a", "C:0:d", "b", "not:a-node"), "e", long))
	if want := []string{"a", "b", "c", "d", "e", "not:a-node"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q: the digest of a name is not a name", got, want)
	}
}

func labeled(instance *v0.Instance, nodes ...string) *v0.Instance {
	for _, node := range nodes {
		instance.Labels[v0.NodeLabel(node)] = ""
	}
	return instance
}

// What nobody could have claimed is freed like the slot of a node that does not exist.
func TestAnUnreadableOwnerIsRemoved(t *testing.T) {
	got := string(nodeRemoval(device(true, []string{"b"}, "b", "x:y/z"), "x:y/z").Encode())
	const want = `{"op":"test","path":"/spec/deviceUsage/cam-1","value":"x:y/z"},` +
		`{"op":"remove","path":"/spec/deviceUsage/cam-1","value":null}]`
	if !strings.HasSuffix(got, want) || strings.Count(got, "remove") != 1 {
		t.Errorf("\n got %s\nwant … %s", got, want)
	}
}
