package deviceplugin_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/kubelettest"
)

func TestKubeletRestartFreesNothing(t *testing.T) {
	const instance = "cam-ccccc0"
	w := newWorld(t)
	w.instance(instance, "node-a")
	k := kubelettest.Start(t, kubelettest.Options{Warmup: 3 * time.Second})
	a := w.agent("node-a", k)
	a.publish(w.device(instance, 2))
	k.Await(v0.ResourceName(instance), count(plugin.Healthy, 2))
	pod := admit(t, k, "p", instance)
	aged()
	k.Restart()
	w.stays(instance, 0, "node-a", 5*time.Second)
	k.Await(v0.ResourceName(instance), count(plugin.Healthy, 2))
	admit(t, k, "q", instance)
	k.End(pod)
	w.becomes(instance, 0, "", 12*time.Second)
	if got := w.owner(instance, 1); got != "node-a" {
		t.Errorf("the running pod's slot is owned by %q", got)
	}
}

func TestAgentRestartKeepsRunningPods(t *testing.T) {
	w := newWorld(t)
	w.instance("cam-dddddd", "node-a")
	k := kubelettest.Start(t, kubelettest.Options{})
	a := w.agent("node-a", k)
	a.publish(w.device("cam-dddddd", 2))
	k.Await("akri.sh/cam-dddddd", count(plugin.Healthy, 2))
	running, ending := admit(t, k, "running", "cam-dddddd"), admit(t, k, "ending", "cam-dddddd")
	// An agent does not wait long for its last list to be sent. On a busy machine, one of
	// several must be.
	for attempt := 1; ; attempt++ {
		a.stop()
		last := k.LastDevices("akri.sh/cam-dddddd")
		if count(plugin.Unhealthy, 2)(last) {
			break
		}
		if attempt == 5 {
			t.Fatalf("the last list of a stopped agent is %v", last)
		}
		a = w.agent("node-a", k)
		a.publish(w.device("cam-dddddd", 2))
		k.Await("akri.sh/cam-dddddd", count(plugin.Healthy, 2))
	}
	k.End(ending)
	a = w.agent("node-a", k)
	a.publish(w.device("cam-dddddd", 2))
	k.Await("akri.sh/cam-dddddd", count(plugin.Healthy, 2))
	slot := map[string]int{"cam-dddddd-0": 0, "cam-dddddd-1": 1}[k.IDs(ending, "app", "akri.sh/cam-dddddd")[0]]
	w.becomes("cam-dddddd", slot, "", 12*time.Second)
	w.stays("cam-dddddd", 1-slot, "node-a", time.Second)
	k.End(running)
	w.becomes("cam-dddddd", 1-slot, "", 12*time.Second)
}

// TestPodReplacedWhileAgentRestarts checks that the slot of a Pod that terminated while the
// agent was down is given to its successor. The kubelet is listed while the successor is
// being admitted, so that its list is incomplete. The call must not wait for a complete one.
func TestPodReplacedWhileAgentRestarts(t *testing.T) {
	const cam, door = "cam-eeeeee", "door-eeeeee"
	w := newWorld(t)
	w.instance(cam, "node-a")
	w.instance(door, "node-a")
	k := kubelettest.Start(t, kubelettest.Options{})
	start := func() *agent {
		a := w.agent("node-a", k)
		a.publish(w.device(cam, 1), w.device(door, 1))
		k.Await(v0.ResourceName(cam), count(plugin.Healthy, 1))
		k.Await(v0.ResourceName(door), count(plugin.Healthy, 1))
		return a
	}
	a := start()
	pod := admit(t, k, "p", cam)
	a.stop()
	k.End(pod)
	a = start()
	a.patchTime.Store(int64(800 * time.Millisecond)) // longer than a list waits for a call
	pod, admitted := kubelettest.Pod("q", v0.ResourceName(door), 1), make(chan error, 1)
	pod.Spec.Containers = append(pod.Spec.Containers, kubelettest.Container("second", v0.ResourceName(cam), 1))
	go func() { admitted <- k.Admit(pod) }()
	w.becomes(door, 0, "node-a", 5*time.Second)
	a.patchTime.Store(0)
	if err := <-admitted; err != nil {
		t.Fatal(err)
	}
	if got := w.owner(cam, 0); got != "node-a" {
		t.Errorf("the slot is owned by %q", got)
	}
}

// TestHiddenAfterRestart checks that a Pod with a slot that only its init container got
// does not delay calls for others: the kubelet keeps that slot for it. The record names a
// second one, whose Pod terminated while the agent was down.
func TestHiddenAfterRestart(t *testing.T) {
	const cam = "cam-ffffff"
	w := newWorld(t)
	w.instance(cam, "node-a")
	k := kubelettest.Start(t, kubelettest.Options{})
	start := func() *agent {
		a := w.agent("node-a", k)
		a.publish(w.device(cam, 2))
		k.Await(v0.ResourceName(cam), count(plugin.Healthy, 2))
		return a
	}
	a := start()
	hidden := kubelettest.Pod("hidden", v0.ResourceName(cam), 1)
	hidden.Spec.InitContainers = hidden.Spec.Containers
	hidden.Spec.Containers = []corev1.Container{{Name: "second"}}
	if err := k.Admit(hidden); err != nil {
		t.Fatal(err)
	}
	pod := admit(t, k, "p", cam)
	a.stop()
	k.End(pod)
	start()
	for slot := range 2 { // the Pod may have either
		w.stays(cam, slot, "node-a", time.Second)
	}
	for _, name := range []string{"q", "r"} {
		k.End(admit(t, k, name, cam))
	}
}
