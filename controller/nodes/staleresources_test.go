package nodes

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// offering returns a node with capacity and allocatable of resources.
func offering(quantities map[corev1.ResourceName][2]string) *corev1.Node {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u", Annotations: map[string]string{"much": "text"}},
		Status: corev1.NodeStatus{
			Capacity: corev1.ResourceList{}, Allocatable: corev1.ResourceList{},
			Images: []corev1.ContainerImage{{Names: []string{"large"}}},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse},
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Message: "long"}},
		},
	}
	for name, pair := range quantities {
		node.Status.Capacity[name] = resource.MustParse(pair[0])
		if pair[1] != "" {
			node.Status.Allocatable[name] = resource.MustParse(pair[1])
		}
	}
	return node
}

func TestStaleOf(t *testing.T) {
	node := offering(map[corev1.ResourceName][2]string{
		"akri.sh/gone":          {"0", "0"},
		"akri.sh/half-gone":     {"0", ""},
		"akri.sh/there":         {"0", "0"},
		"akri.sh/offered":       {"2", "2"},
		"akri.sh/unhealthy":     {"2", "0"}, // its agent may come back
		"akri.sh/contradictory": {"0", "1"},
		"example.com/gone":      {"0", "0"},
		"akri.shop/gone":        {"0", "0"},
		"cpu":                   {"0", "0"},
	})
	exists := map[string]bool{"there": true}
	want := []corev1.ResourceName{"akri.sh/gone", "akri.sh/half-gone"}
	if got := staleOf(node, exists); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	reduced := Reduce(node)
	if got := staleOf(reduced, exists); !slices.Equal(got, want) {
		t.Errorf("of the reduced node: got %q, want %q", got, want)
	}
	if state, uid := stateOf(reduced); state != Ready || uid != "u" || reduced.Name != "a" {
		t.Errorf("the reduced node is %s, %s, %s", reduced.Name, uid, state)
	}
	if len(reduced.Status.Capacity) != 3 || reduced.Status.Images != nil || reduced.Annotations != nil ||
		reduced.Status.Conditions[0].Message != "" {
		t.Errorf("the reduced node keeps fields that are not read: %+v", reduced)
	}
}

func TestStateOf(t *testing.T) {
	unknown := offering(nil)
	unknown.Status.Conditions[1].Status = corev1.ConditionUnknown
	silent := offering(nil)
	silent.Status.Conditions = nil
	for name, tc := range map[string]struct {
		node *corev1.Node
		want State
	}{
		"ready": {offering(nil), Ready}, "unknown": {unknown, NotReady}, "without a condition": {silent, NotReady}, "no node": {nil, Gone},
	} {
		if got, _ := stateOf(tc.node); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}

func TestResourceRemoval(t *testing.T) {
	node := offering(map[corev1.ResourceName][2]string{"akri.sh/gone": {"0", ""}})
	got := string(resourceRemoval(node, []corev1.ResourceName{"akri.sh/gone"}).Encode())
	want := `[{"op":"test","path":"/metadata/uid","value":"u"},` +
		`{"op":"test","path":"/status/capacity/akri.sh~1gone","value":"0"},{"op":"remove","path":"/status/capacity/akri.sh~1gone","value":null}]`
	if got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}
