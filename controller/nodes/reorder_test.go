package nodes_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/nodes"
)

// open creates a node that takes Pods. The API server taints new nodes until a controller
// removes the taint.
func (w *world) open(name string) string {
	w.T.Helper()
	node := w.node(name)
	w.cordon(node, false)
	return node
}

// cordon makes a node unschedulable, or schedulable again.
func (w *world) cordon(node string, unschedulable bool) {
	w.T.Helper()
	patch := fmt.Appendf(nil, `{"spec": {"unschedulable": %t, "taints": null}}`, unschedulable)
	target := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	if err := w.Patch(w.T.Context(), target, client.RawPatch(types.MergePatchType, patch)); err != nil {
		w.T.Fatal(err)
	}
}

// own sets the owner of the first slot of an Instance; "" frees it.
func (w *world) own(name, owner string) {
	w.T.Helper()
	instance := w.instance(name)
	instance.Spec.DeviceUsage = map[string]v0.SlotOwner{v0.SlotName(name, 0): v0.SlotOwner(owner)}
	if err := w.Update(w.T.Context(), instance); err != nil {
		w.T.Error(err)
	}
}

// single creates an Instance with one slot.
func (w *world) single(name string, on ...string) {
	w.T.Helper()
	w.device(name, true, on)
	instance := w.instance(name)
	instance.Spec.Capacity = 1
	if err := w.Update(w.T.Context(), instance); err != nil {
		w.T.Fatal(err)
	}
}

// ordered waits until an Instance lists its nodes in an order.
func (w *world) ordered(name string, want ...string) {
	w.T.Helper()
	w.Eventually("order of "+name, func() string {
		if got := w.instance(name).Spec.Nodes; !slices.Equal(got, want) {
			return fmt.Sprintf("%q", got)
		}
		return ""
	})
}

func TestNodesThatTakeNoPodsAreLast(t *testing.T) {
	w := newWorld(t)
	a, b, c := w.open("a"), w.open("b"), w.open("c")
	w.single("cams-used", a, b, c)
	w.single("cams-free", a, c)
	w.own("cams-used", a)
	w.cordon(c, true) // while no controller runs
	w.run(nodes.Options{NotReadyGrace: never})

	// A drain: the node is cordoned, then the Pod ends and its slot becomes free.
	w.cordon(a, true)
	w.cordon(c, false)
	w.ordered("cams-free", c, a)
	w.ordered("cams-used", a, b, c)
	w.own("cams-used", "")
	w.ordered("cams-used", b, c, a)
	w.own("cams-used", "C:0:"+b)

	// A node that returns moves nothing, and later ones are not affected.
	generation := w.instance("cams-used").Generation
	w.cordon(a, false)
	w.cordon(c, true)
	w.condition(a, corev1.ConditionUnknown)
	w.condition(a, corev1.ConditionTrue)
	w.cordon(c, false)
	w.cordon(a, true)
	w.ordered("cams-free", c, a)
	w.ordered("cams-used", b, c, a)

	// One that is lost without a slot.
	w.own("cams-used", "")
	w.condition(b, corev1.ConditionUnknown)
	w.ordered("cams-used", c, b, a)
	if changes := w.instance("cams-used").Generation - generation; changes != 2 {
		t.Errorf("%d changes, want the release and the last move", changes)
	}
}

// A claim that is written at the same time is kept, with the node's position.
func TestAClaimPreventsTheMove(t *testing.T) {
	w := newWorld(t)
	a, b := w.open("a"), w.open("b")
	w.single("cams-cam", a, b)
	claimed := make(chan bool)
	w.once(http.MethodPatch, "/instances/cams-cam", func() { w.own("cams-cam", a); close(claimed) })
	w.run(nodes.Options{NotReadyGrace: never})
	w.cordon(a, true)
	<-claimed
	w.single("cams-later", a, b)
	w.ordered("cams-later", b, a) // so the controller has been answered
	w.ordered("cams-cam", a, b)
	w.own("cams-cam", "")
	w.ordered("cams-cam", b, a)
}

// A status that is written at the same time delays the move.
func TestAStatusDoesNotPreventTheMove(t *testing.T) {
	w := newWorld(t)
	a, b := w.open("a"), w.open("b")
	w.single("cams-cam", a, b)
	w.once(http.MethodPatch, "/instances/cams-cam", func() {
		instance := w.instance("cams-cam")
		instance.Status.DisplayName = "one"
		if err := w.Status().Update(w.T.Context(), instance); err != nil {
			w.T.Error(err)
		}
	})
	w.run(nodes.Options{NotReadyGrace: never})
	w.cordon(a, true)
	w.ordered("cams-cam", b, a)
}

// If all nodes of a device are closed, the first one that takes Pods again gets the broker.
func TestANodeThatReturnsFirstIsChosen(t *testing.T) {
	w := newWorld(t)
	a, b, c := w.open("a"), w.open("b"), w.open("c")
	w.single("cams-cam", a, b)
	w.single("cams-a", a, c)
	w.single("cams-b", b, c)
	w.run(nodes.Options{NotReadyGrace: never})
	w.cordon(b, true)
	w.ordered("cams-b", c, b) // so the controller has seen it
	w.cordon(a, true)
	w.ordered("cams-a", c, a)
	w.ordered("cams-cam", a, b)
	w.cordon(b, false)
	w.ordered("cams-cam", b, a)
}
