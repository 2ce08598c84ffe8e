package slots

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/e2e/akri"
	"akri.sh/akri/kubebox/cluster"
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

// While claims are refused, by a policy here, a Deployment does not create Pod after Pod.
func TestRefusedClaims(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	device := "refused-" + w.namespace // the node has no Pods with it, not even some that have ended
	instance := w.configuration("refused", 1, device)[device]
	w.allocatable(node1, instance, 1) // or 0 would say nothing
	policy := "refuse-claims-" + w.namespace
	w.apply(fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [akri.sh], apiVersions: [v0], operations: [UPDATE], resources: [instances]}]
  validations:
  - expression: "object.metadata.namespace != '%[2]s' || !has(object.spec.deviceUsage) ||
      object.spec.deviceUsage.all(slot, object.spec.deviceUsage[slot] == '')"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, validationActions: [Deny]}
`, policy, w.namespace))
	allow := w.undo(func(after *world) {
		after.delete("ValidatingAdmissionPolicyBinding", policy)
		after.delete("ValidatingAdmissionPolicy", policy)
	})
	w.eventually("control: the policy denies", func() string {
		_, err := w.Kubectl(w.ctx, "--namespace", w.namespace, "patch", "instance", instance, "--type=merge",
			"--patch", fmt.Sprintf(`{"spec": {"deviceUsage": {"%s-0": "node1"}}}`, instance), "--dry-run=server")
		if err == nil || !strings.Contains(err.Error(), policy) {
			return fmt.Sprint("not denied: ", err)
		}
		return ""
	})
	w.deployment("user", 1, podSpec(node1, nil, container{name: "app", resources: limit(instance, 1)}))
	w.allocatable(node1, instance, 0)
	const maxRejected = 100 // until the kubelet has updated the Node's status, which it does every ten seconds
	before := len(w.list("Pod", "app=user"))
	if before > maxRejected {
		t.Errorf("%d pods were created, want at most %d", before, maxRejected)
	}
	w.throughout(5*time.Second, "few further pods are rejected", func() string {
		if pods := len(w.list("Pod", "app=user")); pods > before+10 {
			return fmt.Sprintf("%d pods", pods)
		}
		return ""
	})
	// After its first refusals, the kubelet rejects the Pods without the agent.
	const maxRefused = 5
	pods, refused := w.list("Pod", "app=user"), 0
	for _, pod := range pods {
		if strings.Contains(pod.Status.Message, "could not be recorded") {
			refused++
		}
	}
	if refused == 0 || refused > maxRefused {
		t.Errorf("the agent refused %d pods, want 1 to %d", refused, maxRefused)
	}
	t.Logf("%d pods were rejected, %d of them by the agent, and %d in the five seconds after", before, refused, len(pods)-before)
	allow()
	w.eventually("the Deployment is ready", func() string {
		if o := w.get("Deployment", "user"); o.Status.ReadyReplicas != 1 {
			return fmt.Sprintf("%d are ready; owners %q", o.Status.ReadyReplicas, w.usage(instance))
		}
		return ""
	})
	w.awaitUsage(instance, node1)
}

// While the API server restarts, and is killed, Pods are replaced. Their slots are right
// afterwards.
func TestAPIServerRestarts(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	instance := w.configuration("outage", 2, "outage0")["outage0"]
	stop := w.monitor()
	var owners, pods []string
	var users []user
	for _, level := range levels {
		name := strings.ToLower(level.name)
		w.deployment(name, 1, podSpec(node1, nil, container{name: "app", resources: limit(level.resource("outage", instance), 1)}))
		pod := w.readyPod(name, "")
		pods, users, owners = append(pods, pod), append(users, w.container(pod, "app")), append(owners, level.owner(node1))
	}
	slices.Sort(owners)
	w.do("kube-apiserver", cluster.Restart)
	w.ready()
	for _, u := range users {
		if !u.alive() {
			t.Errorf("%v has ended", u)
		}
	}
	for _, pod := range pods {
		w.delete("Pod", pod)
	}
	w.do("kube-apiserver", cluster.Kill, cluster.Run)
	w.ready()
	for i, level := range levels {
		w.readyPod(strings.ToLower(level.name), pods[i])
	}
	w.awaitUsage(instance, owners...)
	stop()
}
