package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"akri.sh/akri/e2e/akri"
	"akri.sh/akri/kubebox/cluster"
)

// probeConfiguration, formatted with a name, has one device and a Pod that uses it.
const probeConfiguration = `
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
`

// Restarting a component does not disturb running workloads.
func TestRestarts(t *testing.T) {
	w := newWorld(t)
	w.applyExample()
	w.awaitReady(example, 2)
	before := w.identities()

	available := func(workload string) {
		w.kubectl("--namespace", akri.Namespace, "rollout", "status", "--timeout=60s", workload)
	}
	restartPods := func(kind, name string) func() {
		return func() {
			w.kubectl("--namespace", akri.Namespace, "delete", "pod", "--selector=app.kubernetes.io/name="+name)
			available(kind + "/" + name)
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
			// A node whose heartbeats were late has no ready Pods for some seconds, and
			// Configurations are rejected while no replica of the webhook is ready.
			available("deployment/akri-webhook")
		}
	}
	for i, step := range []struct {
		name string
		do   func()
	}{
		{"controller", restartPods("deployment", "akri-controller")},
		{"webhook", restartPods("deployment", "akri-webhook")},
		{"agent", restartPods("daemonset", "akri-agent")},
		{"handler", restartPods("daemonset", "akri-debug-echo-discovery")},
		{"kubelet", restart("node1/kubelet", cluster.Restart)},
		{"kubelet killed", restart("node1/kubelet", cluster.Kill)},
		{"API server", restart("kube-apiserver", cluster.Restart)},
	} {
		t.Run(step.name, func(t *testing.T) {
			step.do()
			// The system has recovered once it serves another Configuration.
			probe := fmt.Sprintf("probe-%d", i)
			w.apply(fmt.Sprintf(probeConfiguration, probe))
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
			w.checkAgents()
		})
	}
}

// checkAgents waits until the agent is ready.
func (w *world) checkAgents() {
	w.t.Helper()
	w.eventually("the agent is ready", func() string {
		page := w.akri("nodes", "node1")
		if !strings.Contains(page, "agent ready") {
			return page
		}
		return ""
	})
}

// akri runs kubectl-akri and returns what it prints.
func (w *world) akri(arguments ...string) string {
	w.t.Helper()
	command := exec.CommandContext(w.t.Context(), filepath.Join(install.programs.Dir, "kubectl-akri"), arguments...)
	command.Env = append(os.Environ(), "KUBECONFIG="+w.Kubeconfig())
	out, err := command.CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%s%v", out, err)
	}
	return string(out)
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
