package deviceplugin_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"akri.sh/akri/agent/device"
	"akri.sh/akri/internal/kubelettest"
)

// TestSecondInstanceOfOneName checks that of two Instances with the same name, in two
// namespaces, the second is offered when the first one is gone.
func TestSecondInstanceOfOneName(t *testing.T) {
	const name, resource = "cam-2a2a2a", "akri.sh/cam-2a2a2a"
	first, second := newWorld(t), newWorld(t)
	first.instance(name, "node-a")
	k := kubelettest.Start(t, kubelettest.Options{})
	a := first.agent("node-a", k)
	a.publish(first.device(name, 1))
	k.Await(resource, count(plugin.Healthy, 1))
	second.instance(name, "node-a")
	a.Publish(types.NamespacedName{Namespace: second.namespace, Name: "cam"}, []device.Device{second.device(name, 2)})
	second.event("Instance", name, "ResourceNameTaken")
	pod := admit(t, k, "p", name)
	if first.owner(name, 0) != "node-a" || second.owner(name, 0) != "" {
		t.Fatal("the slot is not that of the first Instance")
	}

	a.publish()
	aged()
	k.End(pod)
	first.becomes(name, 0, "", 12*time.Second)
	if err := first.instances().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	k.Await(resource, count(plugin.Healthy, 2))
	admit(t, k, "q", name)
	if got := second.owner(name, 0) + second.owner(name, 1); got != "node-a" {
		t.Errorf("the slots of the second Instance are owned by %q", got)
	}
}
