package handlers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"akri.sh/akri/e2e/akri"
	"akri.sh/akri/kubebox/cluster"
	"akri.sh/akri/kubebox/clustertest"
)

// TestSite runs one handler for all nodes, as config/site does: both agents connect to
// it, although it does not register, and again when it has restarted.
func TestSite(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t, "debug-echo")
	system := func(arguments ...string) string {
		t.Helper()
		return w.kubectl(append([]string{"--namespace=" + akri.Namespace}, arguments...)...)
	}
	dir := filepath.Join(install.programs.Root, "config", "site")
	system("apply", "--server-side", "-k", dir)
	t.Cleanup(func() { w.removeSite(dir) })
	system("rollout", "status", "--timeout=60s", "deployment/akri-site-echo")
	pod := strings.Fields(system("get", "pods", "--selector=app.kubernetes.io/name=akri-site-echo",
		"--output=jsonpath={.items[0].status.podIP} {.items[0].spec.nodeName}"))
	w.patchAgents(filepath.Join(dir, "agents.yaml"), pod[0])

	const text = `apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: site}
spec:
  discoveryHandler: {name: siteEcho, discoveryDetails: "descriptions: [%s]"}
  capacity: 2
`
	const property = "DEBUG_ECHO_DESCRIPTION"
	w.apply(fmt.Sprintf(text, "gate0, gate1"))
	before := w.await(property, "gate0", "gate1")
	w.awaitNodes("node1", "node2")
	w.apply(fmt.Sprintf(text, "gate0"))
	w.await(property, "gate0")

	// The container restarts: the Pod keeps its address, and the devices stay.
	kill := []string{"pkill", "-KILL", "-f", "--", "--name=siteEcho"}
	if err := w.Exec(w.ctx, cluster.Command{Node: pod[1], Args: kill}); err != nil {
		t.Fatal(err)
	}
	w.eventually("the handler restarts", func() string {
		const status = "{.items[0].status.containerStatuses[0]"
		got := system("get", "pods", "--selector=app.kubernetes.io/name=akri-site-echo",
			"--output=jsonpath="+status+".restartCount} "+status+".ready}")
		if got != "1 true" {
			return "restarts and ready: " + got
		}
		return ""
	})
	w.apply(fmt.Sprintf(text, "gate0, gate2")) // both agents reach the new process
	after := w.await(property, "gate0", "gate2")
	w.awaitNodes("node1", "node2")
	for name, instance := range after {
		if former, found := before[name]; found && former.Metadata.UID != instance.Metadata.UID {
			t.Errorf("the Instance %s was created again", name)
		}
	}
}

// removeSite deletes the handler, and the agents' flags.
func (w *world) removeSite(dir string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), 2*timeout)
	defer cancel()
	for _, arguments := range [][]string{
		{"delete", "--ignore-not-found", "-k", dir},
		{"patch", "daemonset", "akri-agent", "--type=json", "--patch", `[{"op":"remove","path":"/spec/template/spec/containers/0/args"}]`},
		{"rollout", "status", "--timeout=60s", "daemonset/akri-agent"},
	} {
		if _, err := w.Kubectl(ctx, append([]string{"--namespace", akri.Namespace}, arguments...)...); err != nil {
			w.t.Error(err)
		}
	}
}

// awaitNodes waits until all Instances have these nodes.
func (w *world) awaitNodes(nodes ...string) {
	w.t.Helper()
	w.eventually("the nodes of the Instances", func() string {
		for name, instance := range w.instances() {
			got := slices.Sorted(slices.Values(instance.Spec.Nodes))
			if !slices.Equal(got, nodes) {
				return fmt.Sprintf("%s has %v", name, got)
			}
		}
		return ""
	})
}

// patchAgents gives the agents the flags in the patch of config/site, but for an address
// instead of a Service.
func (w *world) patchAgents(file, address string) {
	w.t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	const service, services = "akri-site-echo.akri-system.svc", "10.96.0.0/12"
	if strings.Count(string(text), service) != 1 || strings.Count(string(text), services) != 1 {
		w.t.Fatalf("%s has other flags than the test expects:\n%s", file, text)
	}
	patched := strings.NewReplacer(service, address, services, address+"/32").Replace(string(text))
	w.kubectl("--namespace="+akri.Namespace, "patch", "daemonset", "akri-agent", "--patch", patched)
	w.kubectl("--namespace="+akri.Namespace, "rollout", "status", "--timeout=60s", "daemonset/akri-agent")
}
