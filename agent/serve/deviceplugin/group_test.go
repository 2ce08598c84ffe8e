package deviceplugin_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"akri.sh/akri/agent/device"
	"akri.sh/akri/internal/fulltest"
	"akri.sh/akri/internal/kubelettest"
)

const group = "akri.sh/cam"

// offer creates Instances of one Configuration that node-a sees, and runs its agent.
func (w *world) offer(k *kubelettest.Kubelet, capacity int32, names ...string) *agent {
	w.t.Helper()
	var devices []device.Device
	for _, name := range names {
		w.instance(name, "node-a")
		devices = append(devices, w.device(name, capacity))
	}
	a := w.agent("node-a", k)
	a.publish(devices...)
	k.Await(group, count(plugin.Healthy, len(names)))
	for _, name := range names {
		k.Await("akri.sh/"+name, count(plugin.Healthy, int(capacity)))
	}
	return a
}

// owners returns the owners of the slots of Instances, sorted, without the free ones.
func (w *world) owners(names ...string) []string {
	w.t.Helper()
	var all []string
	for _, name := range names {
		for slot := range 5 {
			if owner := w.owner(name, slot); owner != "" {
				all = append(all, owner)
			}
		}
	}
	slices.Sort(all)
	return all
}

// owned waits until the slots of Instances have these owners.
func (w *world) owned(within time.Duration, want []string, names ...string) {
	w.t.Helper()
	deadline := time.Now().Add(within)
	for {
		got := w.owners(names...)
		if slices.Equal(got, want) {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("after %s the owners are %v, want %v", within, got, want)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// keep checks that the owners of the slots of Instances do not change for some time.
func (w *world) keep(during time.Duration, want []string, names ...string) {
	w.t.Helper()
	for start := time.Now(); time.Since(start) < during; time.Sleep(50 * time.Millisecond) {
		if got := w.owners(names...); !slices.Equal(got, want) {
			w.t.Fatalf("after %s the owners are %v, were %v", time.Since(start), got, want)
		}
	}
}

func admitPod(t *testing.T, k *kubelettest.Kubelet, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	if err := k.Admit(pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// TestUnwritableClaims checks that the IDs of a device become unhealthy when claims
// cannot be written, so that its Pods wait instead of failing, and healthy again
// afterwards.
func TestUnwritableClaims(t *testing.T) {
	w := newWorld(t)
	k := kubelettest.Start(t, kubelettest.Options{})
	a := w.offer(k, 2, "cam-a90001")
	a.forbidden.Store(true)
	for name, resource := range map[string]string{"instance": "akri.sh/cam-a90001", "group": group} {
		_ = k.Admit(kubelettest.Pod(name, resource, 1))
		k.Await(resource, count(plugin.Healthy, 0))
	}
	w.event("Instance", "cam-a90001", "ClaimsUnwritable")
	a.forbidden.Store(false)
	k.Await("akri.sh/cam-a90001", count(plugin.Healthy, 2))
	k.Await(group, count(plugin.Healthy, 1))
	admitPod(t, k, kubelettest.Pod("q", group, 1))
	w.owned(time.Second, []string{"C:0:node-a"}, "cam-a90001")
}

// TestConflictIsAnEvent checks that a record that names another owner for a
// container's slot is reported, and not corrected. After a restart of the agent, it is
// not known which of the slots a container with a virtual ID has.
func TestConflictIsAnEvent(t *testing.T) {
	fulltest.Only(t)
	for level, tc := range map[string]struct{ instance, resource, kind, name, says string }{
		"instance":      {"cam-aa0001", "akri.sh/cam-aa0001", "Instance", "cam-aa0001", "node-b"},
		"configuration": {"cam-aa0002", group, "Configuration", "cam", "no record names it"},
	} {
		t.Run(level, func(t *testing.T) {
			w := newWorld(t)
			k := kubelettest.Start(t, kubelettest.Options{})
			a := w.offer(k, 1, tc.instance)
			admitPod(t, k, kubelettest.Pod("p", tc.resource, 1))
			a.stop()
			for _, value := range []string{"", "node-b"} { // an owner changes only through free
				patch := []byte(`[{"op":"replace","path":"/spec/deviceUsage/` + tc.instance + `-0","value":"` + value + `"}]`)
				if _, err := w.instances().Patch(t.Context(), tc.instance, types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			w.agent("node-a", k).publish(w.device(tc.instance, 1))
			if message := w.event(tc.kind, tc.name, "SlotConflict"); !strings.Contains(message, tc.says) {
				t.Errorf("the Event says %q", message)
			}
			w.keep(time.Second, []string{"node-b"}, tc.instance)
			k.Await(tc.resource, count(plugin.Healthy, 0))
		})
	}
}

// event waits for an Event about an object, and returns its message.
func (w *world) event(kind, name, reason string) string {
	w.t.Helper()
	of := w.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "events"}).Namespace(w.namespace)
	// A conflict is reported after several observations, which may be 10 s apart.
	for deadline := time.Now().Add(40 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		list, err := of.List(w.t.Context(), metav1.ListOptions{
			FieldSelector: "involvedObject.kind=" + kind + ",involvedObject.name=" + name + ",reason=" + reason,
		})
		if err != nil {
			w.t.Fatal(err)
		}
		if len(list.Items) > 0 {
			message, _, _ := unstructured.NestedString(list.Items[0].Object, "message")
			return message
		}
	}
	w.t.Fatalf("there is no Event %s of %s %s", reason, kind, name)
	return ""
}
