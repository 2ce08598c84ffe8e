package nodes

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
)

// device is an Instance "cam" of the Configuration "cams" on nodes, with owners
// of its slots 0, 1 and so on.
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
		"shared by two":        {"the other node sees it still", device(true, []string{"a", "b"}), false, TakeOff},
		"shared, last node":    {"another node may find it within the grace", device(true, []string{"a"}), false, TakeOff},
		"local":                {"its name holds the node's: no other node will ever find it", device(false, []string{"a"}), false, Delete},
		"local, held here":     {"the slot is the lost node's own", device(false, []string{"a"}, "a", "C:0:a"), false, Delete},
		"local, held there":    {"that cannot be, so somebody has edited it: nothing of the other's is lost", device(false, []string{"a"}, "b"), false, TakeOff},
		"in use":               {"a Pod of a node that does not answer may run", device(true, []string{"a", "b"}), true, Keep},
		"local, in use":        {"a Pod of a node that does not answer may run", device(false, []string{"a"}), true, Keep},
		"slot only":            {"an agent leaves what it does not see; its slots stay until they are free", device(true, []string{"b"}, "a"), false, TakeOff},
		"slot only, by group":  {"a claim by the Configuration's name is a claim", device(true, []string{"b"}, "C:1:a"), false, TakeOff},
		"not on it":            {"it has been taken off", device(true, []string{"b"}, "", "b"), false, Keep},
		"on its way out":       {"it goes anyway", deleting, false, Keep},
		"unreadable slot only": {"what cannot be read is nobody's", device(true, []string{"b"}, "x:a"), false, Keep},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decide(tc.instance, "a", tc.used); got != tc.want {
				t.Errorf("%s\n got %s\nwant %s", tc.reason, got, tc.want)
			}
		})
	}
}

func TestTakeOffPatch(t *testing.T) {
	const bound = `{"op":"test","path":"/metadata/uid","value":"u"},{"op":"test","path":"/metadata/resourceVersion","value":"7"}`
	const label = `{"op":"remove","path":"/metadata/labels/node.akri.sh~1a"}`
	for name, tc := range map[string]struct {
		instance *v0.Instance
		want     []string
	}{
		"entry and label": {device(true, []string{"b", "a"}), []string{
			`{"op":"test","path":"/spec/nodes/1","value":"a"},{"op":"remove","path":"/spec/nodes/1"}`, label,
		}},
		"slots": {device(true, []string{"a"}, "a", "b", "C:0:a", "C:cams-1:a", "", "C:a:b"), []string{
			`{"op":"test","path":"/spec/nodes/0","value":"a"},{"op":"remove","path":"/spec/nodes/0"}`, label,
			`{"op":"test","path":"/spec/deviceUsage/cam-0","value":"a"},{"op":"replace","path":"/spec/deviceUsage/cam-0","value":""}`,
			`{"op":"test","path":"/spec/deviceUsage/cam-2","value":"C:0:a"},{"op":"replace","path":"/spec/deviceUsage/cam-2","value":""}`,
			`{"op":"test","path":"/spec/deviceUsage/cam-3","value":"C:cams-1:a"},{"op":"replace","path":"/spec/deviceUsage/cam-3","value":""}`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := json.Marshal(takeOff(tc.instance, "a"))
			if err != nil {
				t.Fatal(err)
			}
			want := "[" + strings.Join(append([]string{bound}, tc.want...), ",") + "]"
			if string(got) != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
		})
	}
}

func TestNodesOf(t *testing.T) {
	got := nodesOf(device(true, []string{"c", "b"}, "", "a", "C:0:d", "b", "not:a-node"))
	if want := []string{"a", "b", "c", "d"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
