package slots

import (
	"fmt"
	"testing"

	"akri.sh/akri/e2e/akri"
	"akri.sh/akri/kubebox/clustertest"
)

// While the API server's answers to an agent are lost, a device that only this node has
// can be used, and running containers are not disturbed. A claim that was carried out
// without an answer leaves no owner behind.
func TestLostAnswers(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	w.step("a device of this node only", func(w *world) {
		shared := w.localDevices()
		local := w.localInstance("local", "local0", node1)
		restore := w.loseAnswers(node1)
		u := w.started("user", node1, local)
		restore()
		w.awaitUsage(local, node1)
		if !u.alive() {
			w.t.Errorf("%v has ended", u)
		}
		w.delete("Pod", "user")
		w.gone("user")
		w.awaitUsage(local)
		w.delete("Configuration", "local")
		shared()
	})
	shared := w.configuration("lost", 1, "lost0")["lost0"]
	w.step("a shared device", func(w *world) {
		stop := w.monitor()
		restore := w.loseAnswers(node1)
		w.deployment("user", 1, podSpec(node1, nil, container{name: "app", resources: limit(shared, 1)}))
		w.eventually("the kubelet's call ends", func() string {
			for _, pod := range w.list("Pod", "app=user") {
				if pod.Status.Phase == "Failed" || pod.condition("Ready") {
					return ""
				}
			}
			return "no pod has failed or is ready"
		})
		// Without answers, the slot must become Unhealthy: the Deployment would create
		// ten Pods a second otherwise.
		w.allocatable(node1, shared, 0)
		const maxRejected = 40 // until the node's status has been updated, which takes seconds; without a bound, there are hundreds
		rejected := len(w.list("Pod", "app=user"))
		w.t.Logf("%d pods until the node offered nothing", rejected)
		if rejected > maxRejected {
			w.t.Errorf("%d pods were created, want at most %d", rejected, maxRejected)
		}
		restore()
		w.eventually("the Deployment is ready", func() string {
			if o := w.get("Deployment", "user"); o.Status.ReadyReplicas != 1 {
				return fmt.Sprintf("%d are ready; owners %q", o.Status.ReadyReplicas, w.usage(shared))
			}
			return ""
		})
		w.awaitUsage(shared, node1)
		stop()
		w.end("user", "app=user")
		w.awaitUsage(shared)
	})
}

// localDevices makes the devices of debugEcho local to their nodes. The function that it
// returns makes them shared again; the end of the test does, too.
func (w *world) localDevices() (shared func()) {
	w.t.Helper()
	set := func(w *world, shared string) {
		for _, arguments := range [][]string{
			{"set", "env", "daemonset/akri-debug-echo-discovery", "DEBUG_ECHO_INSTANCES_SHARED=" + shared},
			{"rollout", "status", "--timeout=60s", "daemonset/akri-debug-echo-discovery"},
		} {
			w.in(akri.Namespace).kubectl(arguments...)
		}
	}
	set(w, "false")
	return w.undo(func(after *world) { set(after, "true") })
}

// localInstance creates a Configuration with one device, and returns the Instance of the
// device on a node.
func (w *world) localInstance(configuration, device, node string) string {
	w.t.Helper()
	w.describeDevices(configuration, 1, device)
	name := ""
	w.eventually("the local Instance", func() string {
		for _, instance := range w.list("Instance", "akri.sh/configuration="+configuration) {
			if fmt.Sprint(instance.Spec.Nodes) == fmt.Sprint([]string{node}) {
				name = instance.Metadata.Name
				return ""
			}
		}
		return "there is none"
	})
	return name
}
