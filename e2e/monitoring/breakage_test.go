package monitoring

import (
	"fmt"
	"path/filepath"
	"strings"
)

// away keeps the Pods of a DaemonSet off all nodes, and back undoes that.
const (
	away = `{"spec":{"template":{"spec":{"nodeSelector":{"akri.sh/none":"true"}}}}}`
	back = `{"spec":{"template":{"spec":{"nodeSelector":{"akri.sh/none":null}}}}}`
)

// patch patches a DaemonSet of Akri.
func (w *world) patch(daemonSet, patch string) {
	w.t.Helper()
	w.kubectl("patch", "--namespace=akri-system", "daemonset/"+daemonSet, "--patch", patch)
}

// breakAgent first freezes the agent, then takes it away.
func (w *world) breakAgent() {
	w.t.Helper()
	pid := w.agentPid()
	w.signal("-STOP", pid)
	w.fires("AkriAgentDown")
	w.signal("-CONT", pid)
	w.quiet()
	w.patch("akri-agent", away)
	w.fires("AkriNoAgents")
	w.patch("akri-agent", back)
	w.quiet()
}

// agentPid returns the process ID of the agent in the node.
func (w *world) agentPid() string {
	w.t.Helper()
	const find = "for p in /proc/[0-9]*; do readlink $p/exe | grep -q akri-agent && basename $p; done; true"
	out, err := w.Output(w.t.Context(), node, "sh", "-c", find)
	if err != nil {
		w.t.Fatal(err)
	}
	pid := strings.TrimSpace(string(out))
	if pid == "" || strings.Contains(pid, "\n") {
		w.t.Fatalf("the processes of the agent are %q, want one", pid)
	}
	return pid
}

func (w *world) signal(signal, pid string) {
	w.t.Helper()
	if _, err := w.Output(w.t.Context(), node, "kill", signal, pid); err != nil {
		w.t.Fatal(err)
	}
}

// breakDiscovery takes the handler away, which the devices outlive, and then unplugs them.
func (w *world) breakDiscovery() {
	w.t.Helper()
	w.patch("akri-debug-echo-discovery", away)
	w.fires("AkriDiscoveryFailing", "AkriDiscoveryHandlerAbsent")
	w.patch("akri-debug-echo-discovery", back)
	w.quiet()
	availability := filepath.Join(w.AkriDir(node), "debug-echo", "debug-echo-availability.txt")
	writeFile(w.t, availability, []byte("OFFLINE\n"))
	w.fires("AkriDevicesLost", "AkriNoDevices")
	writeFile(w.t, availability, []byte("ONLINE\n"))
	w.quiet()
}

// breakWebhook takes the webhook away, and tries to create Configurations.
func (w *world) breakWebhook() {
	w.t.Helper()
	w.kubectl("scale", "--namespace=akri-system", "deployment/akri-webhook", "--replicas=0")
	w.fires("AkriWebhookDown")
	w.eventually("AkriWebhookUnreachable fires", func() string {
		manifest := strings.Replace(configurations, "{name: cameras}", "{name: rejected}", 1)
		if _, err := w.KubectlInput(w.t.Context(), []byte(manifest), "apply", "--namespace=default", "--server-side", "-f", "-"); err == nil {
			w.t.Fatal("a Configuration was stored without the webhook")
		}
		firing, err := w.firing("AkriWebhookUnreachable")
		if err != nil || len(firing) == 0 {
			return fmt.Sprintf("it does not: %v", err)
		}
		return ""
	})
	w.look()
	w.kubectl("scale", "--namespace=akri-system", "deployment/akri-webhook", "--replicas=2")
	w.kubectl("rollout", "status", "--namespace=akri-system", "deployment/akri-webhook", "--timeout=60s")
	w.quiet()
}
