package monitoring

import (
	"path/filepath"
	"strings"

	"akri.sh/akri/kubebox/cluster"
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
	w.freeze("akri-agent", "AkriAgentDown")
	w.patch("akri-agent", away)
	w.fires("AkriNoAgents")
	w.patch("akri-agent", back)
	w.quiet()
}

// freeze stops the process of a program until an alert fires.
func (w *world) freeze(program, alert string) {
	w.t.Helper()
	pid := w.pid(program)
	w.signal("-STOP", pid)
	w.fires(alert)
	w.signal("-CONT", pid)
	w.quiet()
}

// pid returns the process ID of a program that runs once on the node.
func (w *world) pid(program string) string {
	w.t.Helper()
	find := "for p in /proc/[0-9]*; do readlink $p/exe | grep -q " + program + " && basename $p; done; true"
	out, err := w.Output(w.t.Context(), node, "sh", "-c", find)
	if err != nil {
		w.t.Fatal(err)
	}
	pid := strings.TrimSpace(string(out))
	if pid == "" || strings.Contains(pid, "\n") {
		w.t.Fatalf("the processes of %s are %q, want one", program, pid)
	}
	return pid
}

func (w *world) signal(signal, pid string) {
	w.t.Helper()
	if _, err := w.Output(w.t.Context(), node, "kill", signal, pid); err != nil {
		w.t.Fatal(err)
	}
}

// breakKubelet stops the kubelet: it forgets the resources, and does not show which slots
// are in use. Containers and agents run on.
func (w *world) breakKubelet() {
	w.t.Helper()
	if err := w.Do(w.t.Context(), cluster.Stop, node+"/kubelet"); err != nil {
		w.t.Fatal(err)
	}
	w.fires("AkriAgentNotRegistered", "AkriSlotsNotReleased")
	if err := w.Do(w.t.Context(), cluster.Run, node+"/kubelet"); err != nil {
		w.t.Fatal(err)
	}
	w.kubectl("wait", "node/"+node, "--for=condition=Ready", "--timeout=60s")
	w.quiet()
}

// breakDiscovery freezes the handler, takes it away, which the devices outlive, and then
// unplugs them.
func (w *world) breakDiscovery() {
	w.t.Helper()
	w.freeze("akri-discovery", "AkriDiscoveryHandlerDown")
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

// invalid is a Configuration that the webhook rejects.
const invalid = `
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: invalid}
spec:
  discoveryHandler: {name: debugEcho, discoveryDetails: "descriptions: [only]"}
  instanceBrokerResources:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ NOTHING_OF_THIS_NAME }}"}}
`

// breakWebhook creates a Configuration that the webhook rejects, takes the webhook away,
// and tries to create another.
func (w *world) breakWebhook() {
	w.t.Helper()
	rejected := strings.Replace(configurations, "{name: cameras}", "{name: rejected}", 1)
	create := func(manifest string) {
		if _, err := w.KubectlInput(w.t.Context(), []byte(manifest), "apply", "--namespace=default", "--server-side", "-f", "-"); err == nil {
			w.t.Fatal("a Configuration was stored that the webhook did not admit")
		}
	}
	w.firesWhile("AkriWebhookRejecting", func() { create(invalid) })
	w.quiet()
	w.kubectl("scale", "--namespace=akri-system", "deployment/akri-webhook", "--replicas=0")
	w.fires("AkriWebhookDown")
	w.firesWhile("AkriWebhookUnreachable", func() { create(rejected) })
	w.kubectl("scale", "--namespace=akri-system", "deployment/akri-webhook", "--replicas=1")
	w.kubectl("rollout", "status", "--namespace=akri-system", "deployment/akri-webhook", "--timeout=60s")
	w.quiet()
}

// breakController takes the controller away, and lets it find its Lease in the hands of
// another when it is back.
func (w *world) breakController() {
	w.t.Helper()
	const lease = `{"spec": {"holderIdentity": "nobody", "leaseDurationSeconds": 3600}}`
	w.kubectl("scale", "--namespace=akri-system", "deployment/akri-controller", "--replicas=0")
	w.fires("AkriControllerDown")
	w.kubectl("wait", "--namespace=akri-system", "--for=delete", "pod", "--selector=app.kubernetes.io/name=akri-controller", "--timeout=60s")
	w.kubectl("patch", "--namespace=akri-system", "lease/akri-controller", "--type=merge", "--patch", lease)
	w.kubectl("scale", "--namespace=akri-system", "deployment/akri-controller", "--replicas=1")
	w.fires("AkriControllerWithoutLeader")
	w.kubectl("delete", "--namespace=akri-system", "lease/akri-controller")
	w.quiet()
}
