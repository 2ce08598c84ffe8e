package deviceplugin_test

import (
	"testing"
	"time"

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
