package nodes

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestOrder(t *testing.T) {
	for _, tc := range []struct {
		reason       string
		nodes        string
		capacity     int32
		closed, held string
		want         string
	}{
		{"all take Pods", "a b c", 1, "", "a", "a b c"},
		{"the broker cannot run on a", "a b c", 1, "a", "", "b c a"},
		{"the broker has moved to b, and a may return: it stays there", "b c a", 1, "", "b", "b c a"},
		{"the broker still runs on a, or may", "a b", 1, "a", "a", "a b"},
		{"a slot by Configuration is one, too", "a b", 1, "a", "C:0:a", "a b"},
		{"a slot of another node does not keep the broker on a", "a b", 1, "a", "b", "b a"},
		{"no other node is better", "a b", 1, "a b", "", "a b"},
		{"every node has a broker, so nothing would move", "a b", 2, "a", "", "a b"},
		{"b has no broker, so nothing would move", "a b c", 1, "b", "", "a b c"},
		{"c replaces a; b keeps its broker", "a b c", 2, "a", "b", "b c a"},
		{"d replaces b; the broker on a ends by itself", "a b c d", 2, "a b c", "a", "a d b c"},
		{"a slot of b does not let a broker run there", "a b c", 1, "a b", "b", "c a b"},
	} {
		instance := device(true, strings.Fields(tc.nodes), strings.Fields(tc.held)...)
		instance.Spec.Capacity = tc.capacity
		open := func(node string) bool { return !slices.Contains(strings.Fields(tc.closed), node) }
		got := order(instance, open)
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: got %q, want %s", tc.reason, got, tc.want)
		}
		if instance.Spec.Nodes = got; !slices.Equal(order(instance, open), got) {
			t.Errorf("%s: the order changes again", tc.reason)
		}
	}
	local := device(false, []string{"a", "b"})
	local.Spec.Capacity = 1
	if got := order(local, func(node string) bool { return node != "a" }); got[0] != "a" {
		t.Errorf("a local device belongs to its first node, but the nodes are now %q", got)
	}
}

func TestTakesPods(t *testing.T) {
	tainted := func(key string, effect corev1.TaintEffect) func(*corev1.Node) {
		return func(node *corev1.Node) { node.Spec.Taints = []corev1.Taint{{Key: key, Effect: effect}} }
	}
	for name, tc := range map[string]struct {
		change func(*corev1.Node)
		want   bool
	}{
		"ready":        {func(*corev1.Node) {}, true},
		"cordoned":     {func(node *corev1.Node) { node.Spec.Unschedulable = true }, false},
		"not ready":    {func(node *corev1.Node) { node.Status.Conditions[0].Status = corev1.ConditionUnknown }, false},
		"disk is full": {tainted(corev1.TaintNodeDiskPressure, corev1.TaintEffectNoSchedule), false},
		"switched off": {tainted(corev1.TaintNodeOutOfService, corev1.TaintEffectNoExecute), false},
		"a preference": {tainted(corev1.TaintNodeDiskPressure, corev1.TaintEffectPreferNoSchedule), true},
		"of a role":    {tainted("node-role.kubernetes.io/control-plane", corev1.TaintEffectNoSchedule), true},
		"of a user":    {tainted("dedicated", corev1.TaintEffectNoSchedule), true},
	} {
		ready := []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		node := &corev1.Node{Status: corev1.NodeStatus{Conditions: ready}}
		tc.change(node)
		if takesPods(node) != tc.want || takesPods(Reduce(node)) != tc.want {
			t.Errorf("%s: takes Pods: %t, if reduced %t; want %t", name, takesPods(node), takesPods(Reduce(node)), tc.want)
		}
	}
}
