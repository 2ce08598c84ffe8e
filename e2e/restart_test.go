package e2e_test

import (
	"fmt"
	"testing"

	"akri.sh/akri/e2e/akri"
	"akri.sh/akri/kubebox/cluster"
)

// Restarting a component does not disturb running workloads.
func TestRestarts(t *testing.T) {
	w := newWorld(t)
	w.applyExample()
	w.awaitReady(example, 2)
	before := w.identities()

	restartPods := func(selector string) func() {
		return func() {
			w.kubectl("--namespace", akri.Namespace, "delete", "pod", "--selector=app.kubernetes.io/name="+selector)
			w.kubectl("--namespace", akri.Namespace, "rollout", "status", "--timeout=60s", map[string]string{
				"akri-controller":           "deployment/akri-controller",
				"akri-agent":                "daemonset/akri-agent",
				"akri-debug-echo-discovery": "daemonset/akri-debug-echo-discovery",
			}[selector])
		}
	}
	restart := func(component string, action cluster.Action) func() {
		return func() {
			if err := w.Do(t.Context(), action, component); err != nil {
				t.Fatal(err)
			}
			if action == cluster.Kill {
				if err := w.Do(t.Context(), cluster.Run, component); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.WaitReady(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, step := range []struct {
		name string
		do   func()
	}{
		{"controller", restartPods("akri-controller")},
		{"agent", restartPods("akri-agent")},
		{"handler", restartPods("akri-debug-echo-discovery")},
		{"kubelet", restart("node1/kubelet", cluster.Restart)},
		{"kubelet killed", restart("node1/kubelet", cluster.Kill)},
		{"API server", restart("kube-apiserver", cluster.Restart)},
	} {
		t.Run(step.name, func(t *testing.T) {
			step.do()
			// The system has recovered once it serves another Configuration.
			probe := fmt.Sprintf("probe-%d", i)
			w.apply(fmt.Sprintf(`
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: %s}
spec:
  discoveryHandler: {name: debugEcho, discoveryDetails: "descriptions: [probe]"}
  instanceBrokerResources:
  - apiVersion: v1
    kind: Pod
    metadata: {name: "{{INSTANCE_NAME}}"}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - {name: c, image: "akri.local/workload:1", resources: {limits: {"{{RESOURCE_NAME}}": "1"}}}
`, probe))
			w.eventually("a new device is served", func() string {
				return w.notReady(probe)
			})
			w.kubectl("delete", "configuration", probe)
			// Its Pod is deleted by Kubernetes' garbage collector, which takes up to half
			// a minute to notice a kind that is new to the cluster.
			w.eventually("deletion of the probe", func() string {
				if instances, pods := len(w.list("instances")), len(w.list("pods")); instances != 2 || pods != 2 {
					return fmt.Sprintf("%d Instances, %d Pods", instances, pods)
				}
				return ""
			})
			if after := w.identities(); after != before {
				t.Errorf("an object was replaced or a container restarted\nbefore %s\n after %s", before, after)
			}
		})
	}
}

// identities describes the existing Instances, Pods and Services by UID, with their
// containers and slots.
func (w *world) identities() string {
	w.t.Helper()
	text := ""
	for _, kind := range []string{"instances", "pods", "services"} {
		for _, item := range w.list(kind) {
			text += fmt.Sprintf("\n%s %s %s", kind, item.Metadata.Name, item.Metadata.UID)
			if kind == "instances" {
				text += fmt.Sprint(item.Spec.DeviceUsage)
			}
			for _, container := range item.Status.ContainerStatuses {
				text += fmt.Sprint(" ", container.ContainerID, " ", container.RestartCount)
			}
		}
	}
	return text
}

// notReady returns "" if a Configuration has one device and is Ready; otherwise it returns
// the Configuration's state.
func (w *world) notReady(configuration string) string {
	w.t.Helper()
	state := w.kubectl("get", "configuration", configuration,
		`--output=jsonpath={.status.instances} {.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Ready")].message}`)
	if len(state) >= 6 && state[:6] == "1 True" {
		return ""
	}
	return state
}
