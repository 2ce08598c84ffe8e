package handlers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"akri.sh/akri/e2e/akri"
	"akri.sh/akri/e2e/peers"
	"akri.sh/akri/kubebox/cluster"
	"akri.sh/akri/kubebox/clustertest"
)

// TestPython runs the template for handlers in Python on a node, with the real agent:
// devices come and go, the handler notices that the agent has restarted, and it passes
// the checks.
func TestPython(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t, "debug-echo")
	env := peers.Python(t, requirements(t)...)
	// A name of its own: the node keeps the sockets of earlier runs.
	name := "files-" + w.namespace
	devices := t.TempDir()
	create := func(file string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(devices, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	handler := w.startPython(name, env)
	create("cam0")
	w.apply(fmt.Sprintf(`apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: files}
spec:
  discoveryHandler: {name: %s, discoveryDetails: "directory: %s"}
  capacity: 1
`, name, devices))
	first := w.await("FILE_NAME", "cam0")
	create("cam1")
	w.await("FILE_NAME", "cam0", "cam1")
	if err := os.Remove(filepath.Join(devices, "cam1")); err != nil {
		t.Fatal(err)
	}
	w.await("FILE_NAME", "cam0")

	w.kubectl("patch", "configuration", "files", "--type=merge", "-p", `{"spec":{"discoveryHandler":{"discoveryDetails":"dir: /tmp"}}}`)
	w.eventually("the refusal in the status", func() string {
		status := w.kubectl("get", "configuration", "files", "--output=jsonpath={.status.discoveryFailures}")
		if strings.Contains(status, "dir: unknown key; the only key is directory") {
			return ""
		}
		return "discoveryFailures is " + status
	})
	w.kubectl("patch", "configuration", "files", "--type=merge", "-p",
		fmt.Sprintf(`{"spec":{"discoveryHandler":{"discoveryDetails":"directory: %s"}}}`, devices))

	w.conforms("/var/lib/akri/"+name+".sock", "directory: "+devices, []string{"", "dir: /tmp", "directory: relative", ": ["}, 1)

	// The new agent knows the handler from its file, so forget that, and let the handler
	// register.
	w.restartAgent("node1", true)
	create("cam2")
	after := w.await("FILE_NAME", "cam0", "cam2")
	for name, before := range first {
		if after[name].Metadata.UID != before.Metadata.UID {
			t.Errorf("the Instance %s was created again", name)
		}
	}

	for _, file := range []string{"cam0", "cam2"} {
		if err := os.Remove(filepath.Join(devices, file)); err != nil {
			t.Fatal(err)
		}
	}
	w.await("FILE_NAME")
	if err := handler.terminate(); err != nil {
		t.Errorf("the handler after SIGTERM: %v\n%s", err, handler.output())
	}
}

// requirements are those of the template.
func requirements(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../examples/handlers/python/requirements.txt")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// pythonHandler is a running handler.
type pythonHandler struct {
	w       *world
	pidFile string
	log     string
	ended   chan error
}

// startPython starts the template on the first node.
func (w *world) startPython(name string, env []string) *pythonHandler {
	w.t.Helper()
	dir := w.t.TempDir()
	script, err := filepath.Abs("../../examples/handlers/python/handler.py")
	if err != nil {
		w.t.Fatal(err)
	}
	h := &pythonHandler{w: w, pidFile: filepath.Join(dir, "pid"), log: filepath.Join(dir, "log"), ended: make(chan error, 1)}
	ctx, cancel := context.WithCancel(w.ctx)
	go func() {
		h.ended <- w.Exec(ctx, cluster.Command{
			Node: "node1", Env: append(env, "HANDLER_NAME="+name, "DISCOVERY_HANDLERS_DIRECTORY=/var/lib/akri"),
			// $$ is the process ID in the node, as kill needs it.
			Args: []string{"sh", "-c", `echo $$ > "$1"; exec python3 "$2" > "$3" 2>&1`, "sh", h.pidFile, script, h.log},
		})
	}()
	w.t.Cleanup(func() {
		cancel()
		<-h.ended
		if w.t.Failed() {
			w.t.Logf("the handler's log:\n%s", h.output())
		}
	})
	return h
}

func (h *pythonHandler) output() string {
	text, err := os.ReadFile(h.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// terminate sends SIGTERM and returns the error with which the handler exits.
func (h *pythonHandler) terminate() error {
	pid, err := os.ReadFile(h.pidFile)
	if err != nil {
		return err
	}
	kill := []string{"kill", "-" + fmt.Sprint(int(syscall.SIGTERM)), strings.TrimSpace(string(pid))}
	if err := h.w.Exec(h.w.ctx, cluster.Command{Node: "node1", Args: kill}); err != nil {
		return err
	}
	select {
	case err := <-h.ended:
		h.ended <- err
		return err
	case <-time.After(timeout):
		return fmt.Errorf("it has not exited within %v", timeout)
	}
}

// restartAgent replaces the agent of a node, and returns when the new one is ready. If
// forgetful, the new agent does not know the handlers of the earlier one.
func (w *world) restartAgent(node string, forgetful bool) {
	w.t.Helper()
	const selector = "--selector=app.kubernetes.io/name=akri-agent"
	before := w.kubectl("--namespace="+akri.Namespace, "get", "pods", selector, "--field-selector=spec.nodeName="+node, "--output=name")
	if forgetful {
		store := filepath.Join(w.AkriDir(node), "agent-handlers.json")
		if err := os.Remove(store); err != nil {
			w.t.Fatal(err)
		}
	}
	w.kubectl("--namespace="+akri.Namespace, "delete", "--wait=true", strings.TrimSpace(before))
	w.kubectl("--namespace="+akri.Namespace, "rollout", "status", "--timeout=60s", "daemonset/akri-agent")
}
