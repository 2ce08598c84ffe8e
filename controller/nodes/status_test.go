package nodes_test

import (
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/nodes"
)

// offers writes resources into a node's status as its kubelet does.
func (w *world) offers(node string, quantities map[string]string) {
	w.T.Helper()
	w.patchNode(node, map[string]any{"status": map[string]any{"capacity": quantities, "allocatable": quantities}})
}

// has reports whether a resource is in a node's status.
func (w *world) has(node, resource string) bool {
	w.T.Helper()
	var object corev1.Node
	if err := w.Get(w.T.Context(), types.NamespacedName{Name: node}, &object); err != nil {
		w.T.Fatal(err)
	}
	_, capacity := object.Status.Capacity[corev1.ResourceName(resource)]
	_, allocatable := object.Status.Allocatable[corev1.ResourceName(resource)]
	return capacity || allocatable
}

// lacks waits until a resource is no longer in a node's status.
func (w *world) lacks(node, resource string) {
	w.T.Helper()
	w.Eventually("removal of "+resource, func() string {
		if w.has(node, resource) {
			return "it is still there"
		}
		return ""
	})
}

func TestStaleResourcesAreRemoved(t *testing.T) {
	w := newWorld(t)
	a := w.node("a")
	w.device("cams-cam", true, []string{a})
	configuration := &v0.Configuration{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Namespace},
		Spec:       v0.ConfigurationSpec{DiscoveryHandler: v0.DiscoveryHandler{Name: "h"}},
	}
	if err := w.Create(t.Context(), configuration); err != nil {
		t.Fatal(err)
	}
	group := v0.ResourceName(configuration.Name)
	w.offers(a, map[string]string{
		"akri.sh/gone-1": "0", "akri.sh/gone-2": "0", "akri.sh/cams-cam": "0", group: "0",
		"akri.sh/offered": "2", "example.com/gone": "0", "cpu": "4",
	})
	w.run(nodes.Options{NotReadyGrace: never, StaleDelay: short})
	w.lacks(a, "akri.sh/gone-1")
	for resource, why := range map[string]string{
		"akri.sh/cams-cam": "its Instance exists", group: "its Configuration exists", "akri.sh/offered": "a kubelet offers it",
		"example.com/gone": "it belongs to another vendor", "cpu": "it belongs to Kubernetes",
	} {
		if !w.has(a, resource) {
			t.Errorf("%s was removed although %s", resource, why)
		}
	}
	if w.has(a, "akri.sh/gone-2") {
		t.Error("resources that are due at the same time are not removed in one request")
	}

	// The Instance is deleted after the kubelet has set its resource to 0. It reports its status
	// now and then.
	if err := w.Delete(t.Context(), w.instance("cams-cam")); err != nil {
		t.Fatal(err)
	}
	w.condition(a, corev1.ConditionTrue)
	w.lacks(a, "akri.sh/cams-cam")
}

func TestAResourceThatAKubeletOffersAgainIsKept(t *testing.T) {
	w := newWorld(t)
	a := w.node("a")
	w.offers(a, map[string]string{"akri.sh/back": "0", "akri.sh/gone": "0"})
	w.once(http.MethodPatch, "/nodes/"+a+"/status", func() { w.offers(a, map[string]string{"akri.sh/back": "1"}) })
	w.run(nodes.Options{StaleDelay: short})
	w.lacks(a, "akri.sh/gone") // by another attempt
	if !w.has(a, "akri.sh/back") {
		t.Error("a resource that a kubelet offers again was removed")
	}
}
