package e2e_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

// The state of the agents is read through the real kubelet, by a user who may only list
// the agents' Pods and forward ports to them.
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
		for _, part := range []string{"node1", "ready", "debugEcho Active", "2 held"} {
			if !strings.Contains(line, part) {
				return fmt.Sprintf("%q is not in\n%s", part, line)
			}
		}
		return ""
	})
	page := w.akri(reader, "nodes", "node1")
	t.Logf("%s\n%s", w.akri(reader, "nodes"), page)
	for _, part := range []string{
		"agent ready", "Handlers:\n  debugEcho  Active, 1 stream", w.namespace + "/shown  handler debugEcho  2 devices",
		"shown-", "held by a container",
	} {
		if !strings.Contains(page, part) {
			t.Errorf("%q is not in\n%s", part, page)
		}
	}
	if strings.Contains(page, "invariant") {
		t.Errorf("an invariant is violated:\n%s", page)
	}
	if line := w.akri(reader, "nodes", "--port", "9999"); !strings.Contains(line, "node1: the agent does not listen on port 9999") {
		t.Errorf("an agent that cannot be read is shown as\n%s", line)
	}

	// The endpoint, and the metrics, are on the Pod's loopback address only. Probes are not.
	address := w.kubectl("get", "pods", "-n", "akri-system", "-l", "app.kubernetes.io/name=akri-agent",
		"--output=jsonpath={.items[0].status.podIP}")
	for port, open := range map[string]bool{"8081": true, "8080": false, "8089": false} {
		connection, err := w.Dial(t.Context(), "node1", "tcp", address+":"+port)
		if err == nil {
			connection.Close()
		}
		if open != (err == nil) {
			t.Errorf("connecting to port %s of the pod's address %s: %v", port, address, err)
		}
	}
}

// The versions are read from the running programs, which are all built from this checkout.
func TestVersionsAreShown(t *testing.T) {
	w := newWorld(t)
	reader := w.readerOfAgents()
	w.eventually("all parts have the version "+install.programs.Version, func() string {
		page := w.akri(reader, "version", "--check") // prints the exit status if it is not 0
		for _, part := range []string{"controller", "webhook", "agent", "debug-echo"} {
			if !regexp.MustCompile(`(?m)^` + part + ` +` + regexp.QuoteMeta(install.programs.Version) + ` +akri-`).MatchString(page) {
				return fmt.Sprintf("the version of %s is not in\n%s", part, page)
			}
		}
		if strings.Contains(page, "exit status") {
			return page
		}
		return ""
	})
}

// The report has what only a kubelet serves: logs, and the state of agents.
func TestReportIsWritten(t *testing.T) {
	w := newWorld(t)
	w.apply(`
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: reported}
spec:
  discoveryHandler: {name: debugEcho, discoveryDetails: "descriptions: [foo0]"}
  brokerProperties: {PASSWORD: PLANTED-password}
  instanceBrokerResources:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: "{{INSTANCE_NAME}}"}
    data: {any: "{{INSTANCE_PROPERTIES.PASSWORD}}"}
`)
	w.awaitReady("reported", 1)
	dir := t.TempDir()
	archive := filepath.Join(dir, "report.tar.gz")
	if out := w.akri(w.Kubeconfig(), "report", "-f", archive); !strings.Contains(out, archive) {
		t.Fatal(out)
	}
	if out, err := exec.CommandContext(t.Context(), "tar", "-C", dir, "-xzf", archive).CombinedOutput(); err != nil {
		t.Fatalf("tar: %v: %s", err, out)
	}
	for pattern, want := range map[string]string{
		"logs/akri-agent-*/agent.log":       "Agent started",
		"logs/akri-controller-*/*.log":      "Starting",
		"logs/akri-webhook-*/*.log":         "Starting",
		"agents/node1.yaml":                 "debugEcho",
		"versions.txt":                      install.programs.Version,
		"akri/*/configurations/*.yaml":      "PASSWORD: REDACTED",
		"system/daemonsets/akri-agent.yaml": "numberReady",
	} {
		files, err := filepath.Glob(filepath.Join(dir, "akri-report", pattern))
		if err != nil || len(files) == 0 {
			t.Errorf("%s is missing: %v", pattern, err)
			continue
		}
		if text, err := os.ReadFile(files[0]); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%q is not in %s: %v\n%s", want, pattern, err, text)
		}
	}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), "PLANTED-") {
			t.Errorf("%s has a password:\n%s", path, text)
		}
		return err
	})
	if err != nil {
		t.Error(err)
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
	w.kubectl("create", "role", name+"-forward", "-n", namespace, "--verb=get,create", "--resource=pods/portforward")
	for _, role := range []string{name, name + "-forward"} {
		w.kubectl("create", "rolebinding", role, "-n", namespace, "--role", role, "--serviceaccount", w.namespace+":"+name)
		w.t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), timeout) // the test's own context has ended
			defer cancel()
			if _, err := w.Kubectl(ctx, "delete", "role,rolebinding", "-n", namespace, role); err != nil {
				w.t.Error(err)
			}
		})
	}
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
