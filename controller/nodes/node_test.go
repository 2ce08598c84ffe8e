package nodes

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestStatusOf(t *testing.T) {
	for reported, want := range map[corev1.ConditionStatus]State{
		corev1.ConditionTrue: Ready, corev1.ConditionFalse: NotReady, corev1.ConditionUnknown: NotReady, "": NotReady,
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
		if reported != "" {
			node.Status.Conditions = []corev1.NodeCondition{{Type: "DiskPressure", Status: "False"}, {Type: corev1.NodeReady, Status: reported}}
		}
		if got := statusOf(node); got != (status{want, "u"}) || statusOf(Reduce(node)) != got {
			t.Errorf("reported %q: %v, if reduced %v, want %s", reported, got, statusOf(Reduce(node)), want)
		}
	}
	if got := statusOf(nil); got.state != Gone {
		t.Errorf("a node that does not exist is %s", got.state)
	}
}

// The size of a node in the cache does not depend on the size of the node.
func TestReduce(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", Labels: map[string]string{}}}
	node.Status.Capacity = corev1.ResourceList{}
	for i := range 50 {
		node.Labels[fmt.Sprint("label", i)] = "x"
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{Names: []string{fmt.Sprint("image", i)}})
		node.Status.Capacity[corev1.ResourceName(fmt.Sprint("akri.sh/cam-", i))] = resource.MustParse("1")
	}
	if size := Reduce(node).Size(); size > 64 {
		t.Errorf("%d bytes when encoded", size)
	}
	for name, quantity := range map[corev1.ResourceName]string{
		"akri.sh/gone": "0", "akri.sh/there": "1", "example.com/gone": "0", "akri.shop/gone": "0", "cpu": "0",
	} {
		node.Status.Capacity[name] = resource.MustParse(quantity)
	}
	if got := Reduce(node).Status.Capacity; len(got) != 1 || len(emptyResources(&corev1.Node{Status: corev1.NodeStatus{Capacity: got}})) != 1 {
		t.Errorf("kept %v, want only akri.sh/gone", got)
	}
}
