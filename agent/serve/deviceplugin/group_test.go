package deviceplugin_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"k8s.io/utils/ptr"

	"akri.sh/akri/agent/device"
	"akri.sh/akri/agent/serve/claims"
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

// TestTwoDevicesInOneContainer checks that a container that requests two devices gets
// two different ones, in one response.
func TestTwoDevicesInOneContainer(t *testing.T) {
	w := newWorld(t)
	k := kubelettest.Start(t, kubelettest.Options{})
	w.offer(k, 2, "cam-a10001", "cam-a10002")
	pod := admitPod(t, k, kubelettest.Pod("p", group, 2))
	responses := k.Responses(pod, "app")
	want := map[string]string{"URL": "rtsp://cam-a10001", "URL_A10001": "rtsp://cam-a10001", "URL_A10002": "rtsp://cam-a10002"}
	if len(responses) != 1 || !maps.Equal(responses[0].Envs, want) {
		t.Errorf("responses %v, want one with %v", responses, want)
	}
	for _, name := range []string{"cam-a10001", "cam-a10002"} {
		if got := w.owners(name); len(got) != 1 {
			t.Errorf("the owners of %s are %v, want one", name, got)
		}
	}
	// Two in use, and one more of each device.
	k.Await(group, count(plugin.Healthy, 4))
	k.End(pod)
	w.owned(12*time.Second, nil, "cam-a10001", "cam-a10002")
}

// TestTwoLevels checks that the resources of an Instance and of its Configuration share
// the slots, also within one container.
func TestTwoLevels(t *testing.T) {
	w := newWorld(t)
	k := kubelettest.Start(t, kubelettest.Options{})
	w.offer(k, 2, "cam-a20001")
	both := kubelettest.Pod("both", group, 1)
	both.Spec.Containers[0].Resources.Limits["akri.sh/cam-a20001"] = kubelettest.Pod("", group, 1).Spec.Containers[0].Resources.Limits[group]
	admitPod(t, k, both)
	w.owned(time.Second, []string{"C:0:node-a", "node-a"}, "cam-a20001")
	k.Await("akri.sh/cam-a20001", count(plugin.Healthy, 1)) // its own slot
	if err := k.Admit(kubelettest.Pod("late", group, 1)); err == nil {
		t.Error("a third container got a device with two slots")
	}
	aged()
	k.End(both)
	w.owned(12*time.Second, nil, "cam-a20001")
	k.Await("akri.sh/cam-a20001", count(plugin.Healthy, 2))
}

// TestGroupContainersOfOnePod checks the IDs of init containers, which the kubelet
// reuses, and of sidecars, which keep theirs.
func TestGroupContainersOfOnePod(t *testing.T) {
	for name, tc := range map[string]struct {
		sidecar bool
		want    []string
	}{
		"init and app": {false, []string{"C:0:node-a"}}, "sidecar and app": {true, []string{"C:0:node-a", "C:1:node-a"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			k := kubelettest.Start(t, kubelettest.Options{})
			w.offer(k, 2, "cam-a30001", "cam-a30002")
			pod := kubelettest.Pod("p", group, 1)
			first := kubelettest.Container("first", group, 1)
			if tc.sidecar {
				first.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
			}
			pod.Spec.InitContainers = []corev1.Container{first}
			admitPod(t, k, pod)
			w.owned(time.Second, tc.want, "cam-a30001", "cam-a30002")
			aged()
			w.keep(2*time.Second, tc.want, "cam-a30001", "cam-a30002")
			k.End(pod)
			w.owned(12*time.Second, nil, "cam-a30001", "cam-a30002")
		})
	}
}

// TestGroupPodIsReplaced checks that a device with one slot is given to the next Pod as
// soon as the kubelet offers its ID again, before the slot is released.
func TestGroupPodIsReplaced(t *testing.T) {
	w := newWorld(t)
	k := kubelettest.Start(t, kubelettest.Options{})
	w.offer(k, 1, "cam-a40001")
	for range 5 {
		pod := admitPod(t, k, kubelettest.Pod("p", group, 1))
		w.owned(time.Second, []string{"C:0:node-a"}, "cam-a40001")
		k.End(pod)
		k.Remove(pod)
	}
	last := admitPod(t, k, kubelettest.Pod("p", group, 1))
	aged()
	w.keep(time.Second, []string{"C:0:node-a"}, "cam-a40001")
	k.End(last)
	w.owned(12*time.Second, nil, "cam-a40001")
}

// TestGroupRepeats checks that an Allocate that is repeated, at the same time or after
// the response of the API server was lost, gives the container the same slots.
func TestGroupRepeats(t *testing.T) {
	w := newWorld(t)
	k := kubelettest.Start(t, kubelettest.Options{})
	names := []string{"cam-ac0001", "cam-ac0002"}
	a := w.offer(k, 2, names...)
	conn, err := grpc.NewClient("unix://"+k.Socket(group), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := plugin.NewDevicePluginClient(conn)
	allocate := func() map[string]string {
		answer, err := client.Allocate(t.Context(), &plugin.AllocateRequest{
			ContainerRequests: []*plugin.ContainerAllocateRequest{{DevicesIds: []string{"1", "0", "1"}}},
		})
		if err != nil || len(answer.GetContainerResponses()) != 1 {
			t.Errorf("%v, %v", answer, err)
			return nil
		}
		return answer.GetContainerResponses()[0].GetEnvs()
	}
	a.lossy.Store(true)
	answers := make([]map[string]string, 4)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() { answers[i] = allocate() })
	}
	all.Wait()
	answers = append(answers, allocate())
	for _, answer := range answers {
		if len(answer) != 3 || !maps.Equal(answer, answers[0]) {
			t.Errorf("environments %v, want the same of two devices", answers)
		}
	}
	for _, name := range names {
		if got := w.owners(name); len(got) != 1 {
			t.Errorf("the owners of %s are %v, want one", name, got)
		}
	}
}

// TestFailedPodReleases checks that a slot is released whose Pod the kubelet has refused
// after the allocation.
func TestFailedPodReleases(t *testing.T) {
	w := newWorld(t)
	k := kubelettest.Start(t, kubelettest.Options{})
	w.offer(k, 1, "cam-ab0001")
	pod := kubelettest.Pod("p", group, 1)
	pod.Spec.Containers = append(pod.Spec.Containers, kubelettest.Container("second", "akri.sh/nothing", 1))
	if err := k.Admit(pod); err == nil {
		t.Fatal("a pod that requests an unknown resource was admitted")
	}
	w.owned(time.Second, []string{"C:0:node-a"}, "cam-ab0001")
	w.owned(12*time.Second, nil, "cam-ab0001")
}

// TestGroupSurvivesRestarts checks that neither a restart of the agent nor one of the
// kubelet changes the owner of a running container's slot.
func TestGroupSurvivesRestarts(t *testing.T) {
	fulltest.Only(t)
	w := newWorld(t)
	k := kubelettest.Start(t, kubelettest.Options{Warmup: 2 * time.Second})
	names := []string{"cam-a50001", "cam-a50002"}
	a := w.offer(k, 1, names...)
	running, ending := admitPod(t, k, kubelettest.Pod("running", group, 1)), admitPod(t, k, kubelettest.Pod("ending", group, 1))
	aged()
	owner := "C:" + k.IDs(running, "app", group)[0] + ":node-a"
	a.stop()
	k.End(ending)
	a = w.agent("node-a", k)
	a.publish(w.device(names[0], 1), w.device(names[1], 1))
	w.owned(12*time.Second, []string{owner}, names...)
	k.Await(group, count(plugin.Healthy, 2))
	k.Restart()
	w.keep(4*time.Second, []string{owner}, names...)
	k.Await(group, count(plugin.Healthy, 2))
	admitPod(t, k, kubelettest.Pod("next", group, 1))
	w.owned(time.Second, []string{"C:0:node-a", "C:1:node-a"}, names...)
	k.End(running)
	w.owned(12*time.Second, slices.DeleteFunc([]string{"C:0:node-a", "C:1:node-a"}, func(o string) bool { return o == owner }), names...)
}

// TestGroupAdoptsAkrisOwner checks that a slot that the original Akri has recorded, with
// its own virtual ID, is released: its container is gone.
func TestGroupAdoptsAkrisOwner(t *testing.T) {
	w := newWorld(t)
	k := kubelettest.Start(t, kubelettest.Options{})
	w.instance("cam-a60001", "node-a")
	patch := []byte(`{"spec":{"deviceUsage":{"cam-a60001-0":"C:cam-3:node-a","cam-a60001-1":"C:cam-3:node-b"}}}`)
	_, err := w.instances().Patch(t.Context(), "cam-a60001", types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a := w.agent("node-a", k)
	a.publish(w.device("cam-a60001", 2))
	w.owned(12*time.Second, []string{"C:cam-3:node-b"}, "cam-a60001")
	k.Await(group, count(plugin.Healthy, 1))
}

// TestGroupRace lets two kubelets request the last slot through the Configuration's
// resource. One gets it; the IDs of the other become unhealthy.
func TestGroupRace(t *testing.T) {
	w := newWorld(t)
	w.instance("cam-a70001", "node-a", "node-b")
	kubelets := []*kubelettest.Kubelet{kubelettest.Start(t, kubelettest.Options{}), kubelettest.Start(t, kubelettest.Options{})}
	for i, node := range []string{"node-a", "node-b"} {
		w.agent(node, kubelets[i]).publish(w.device("cam-a70001", 1))
		kubelets[i].Await(group, count(plugin.Healthy, 1))
	}
	errs := make([]error, 2)
	var both sync.WaitGroup
	for i, k := range kubelets {
		both.Go(func() { errs[i] = k.Admit(kubelettest.Pod(fmt.Sprint("p", i), group, 1)) })
	}
	both.Wait()
	if (errs[0] == nil) == (errs[1] == nil) {
		t.Fatalf("want one winner: %v", errs)
	}
	for i, k := range kubelets {
		if errs[i] != nil {
			start := time.Now()
			k.Await(group, count(plugin.Healthy, 0))
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("the loser's ID became unhealthy after %s", took)
			}
			w.event("Configuration", "cam", "AllocationRefused")
		}
	}
}

// TestGroupWithoutAPIServer checks that local devices are given to containers through
// the Configuration's resource while the API server is unreachable.
func TestGroupWithoutAPIServer(t *testing.T) {
	fulltest.Only(t)
	w := newWorld(t)
	k := kubelettest.Start(t, kubelettest.Options{})
	names := []string{"cam-a80001", "cam-a80002"}
	a := w.agent("node-a", k)
	var devices []device.Device
	for _, name := range names {
		w.instance(name, "node-a")
		d := w.device(name, 1)
		d.Shared = false
		devices = append(devices, d)
	}
	a.publish(devices...)
	k.Await(group, count(plugin.Healthy, 2))
	a.down.Store(true)
	start := time.Now()
	pod := admitPod(t, k, kubelettest.Pod("p", group, 2))
	if took := time.Since(start); took > claims.Deadline {
		t.Errorf("the allocation of local devices took %s", took)
	}
	if env := k.Responses(pod, "app")[0].Envs; env["URL_A80001"] == "" || env["URL_A80002"] == "" {
		t.Errorf("environment %v", env)
	}
	a.down.Store(false)
	w.owned(15*time.Second, []string{"C:0:node-a", "C:1:node-a"}, names...)
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
