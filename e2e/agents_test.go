package e2e_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// akri runs kubectl-akri and returns what it prints.
func (w *world) akri(kubeconfig string, arguments ...string) string {
	w.t.Helper()
	command := exec.CommandContext(w.t.Context(), filepath.Join(install.programs.Dir, "kubectl-akri"), arguments...)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	out, err := command.CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%s%v", out, err)
	}
	return string(out)
}

// The agents are shown to a user who may only list their Pods, Configurations and Instances.
func TestAgentsAreShown(t *testing.T) {
	w := newWorld(t)
	w.apply(`
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: shown}
spec:
  discoveryHandler: {name: debugEcho, discoveryDetails: "descriptions: [foo0, foo1]"}
  capacity: 3
  brokerSpec:
    brokerPodSpec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: broker
        image: akri.local/workload:1
        resources: {requests: {"{{PLACEHOLDER}}": "1"}, limits: {"{{PLACEHOLDER}}": "1"}}
`)
	w.awaitReady("shown", 2)
	reader := w.readerOfAgents()
	w.eventually("the agent shows its state", func() string {
		line := w.akri(reader, "nodes")
		for _, part := range []string{"node1", "ready", "2 held"} {
			if !strings.Contains(line, part) {
				return fmt.Sprintf("%q is not in\n%s", part, line)
			}
		}
		return ""
	})
	page := w.akri(reader, "nodes", "node1")
	t.Logf("%s\n%s", w.akri(reader, "nodes"), page)
	for _, part := range []string{"Node node1  agent ready\n  pod      akri-system/akri-agent-", w.namespace + "/shown-", "  2 free, 1 held"} {
		if !strings.Contains(page, part) {
			t.Errorf("%q is not in\n%s", part, page)
		}
	}

	// The metrics are on the Pod's loopback address only. Probes are not.
	address := w.kubectl("get", "pods", "-n", "akri-system", "-l", "app.kubernetes.io/name=akri-agent",
		"--output=jsonpath={.items[0].status.podIP}")
	for port, open := range map[string]bool{"8081": true, "8080": false} {
		connection, err := w.Dial(t.Context(), "node1", "tcp", address+":"+port)
		if err == nil {
			connection.Close()
		}
		if open != (err == nil) {
			t.Errorf("connecting to port %s of the pod's address %s: %v", port, address, err)
		}
	}
}

// readerOfAgents returns the kubeconfig of a user who has the permissions that
// docs/kubectl-akri.md names.
func (w *world) readerOfAgents() string {
	w.t.Helper()
	const namespace = "akri-system"
	name := strings.ToLower(w.t.Name())
	w.kubectl("create", "serviceaccount", name)
	w.kubectl("create", "role", name, "-n", namespace, "--verb=list", "--resource=pods")
	w.kubectl("create", "clusterrole", name, "--verb=list", "--resource=configurations.akri.sh,instances.akri.sh")
	w.kubectl("create", "rolebinding", name, "-n", namespace, "--role", name, "--serviceaccount", w.namespace+":"+name)
	w.kubectl("create", "clusterrolebinding", name, "--clusterrole", name, "--serviceaccount", w.namespace+":"+name)
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout) // the test's own context has ended
		defer cancel()
		if _, err := w.Kubectl(ctx, "delete", "role,rolebinding,clusterrole,clusterrolebinding", "-n", namespace, name); err != nil {
			w.t.Error(err)
		}
	})
	admin, err := os.ReadFile(w.Kubeconfig())
	if err != nil {
		w.t.Fatal(err)
	}
	file := filepath.Join(w.t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, admin, 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.kubectl("--kubeconfig", file, "config", "set-credentials", name, "--token", w.kubectl("create", "token", name))
	w.kubectl("--kubeconfig", file, "config", "set-context", "--current", "--user", name)
	return file
}
