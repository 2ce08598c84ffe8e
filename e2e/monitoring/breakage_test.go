package monitoring

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"akri.sh/akri/e2e/akri"
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

// breakRecord gives the slot of the running user to a node that does not exist, and
// corrects that. The slot must be free in between, so the agent, which would record its
// own node again, is stopped meanwhile.
func (w *world) breakRecord() {
	w.t.Helper()
	w.kubectl("wait", "--namespace=devices", "--for=condition=Ready", "pod/user", "--timeout=90s")
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Spec     struct{ DeviceUsage map[string]string }
		}
	}
	text := w.kubectl("get", "--namespace=devices", "instances", "--selector=akri.sh/configuration=cameras", "-o", "json")
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		w.t.Fatal(err)
	}
	for _, instance := range list.Items {
		for slot, owner := range instance.Spec.DeviceUsage {
			if owner == "" {
				continue
			}
			record := func(owner string) {
				w.kubectl("patch", "--namespace=devices", "instance/"+instance.Metadata.Name, "--type=merge",
					"--patch", fmt.Sprintf(`{"spec": {"deviceUsage": {%q: %q}}}`, slot, owner))
			}
			pid := w.pid("akri-agent")
			w.signal("-STOP", pid)
			record("")
			record("elsewhere")
			w.signal("-CONT", pid)
			w.fires("AkriSlotConflict")
			record("") // the agent records its node
			return
		}
	}
	w.t.Fatalf("the user has no slot: %s", text)
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

// refusal is a policy that refuses claims of slots in the namespace devices.
const refusal = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: refuse-claims}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [akri.sh], apiVersions: [v0], operations: [UPDATE], resources: [instances]}]
  validations:
  - expression: "object.metadata.namespace != 'devices' || !has(object.spec.deviceUsage) ||
      object.spec.deviceUsage.all(slot, object.spec.deviceUsage[slot] == '')"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: refuse-claims}
spec: {policyName: refuse-claims, validationActions: [Deny]}
`

// breakClaims refuses claims of slots. A policy is in force some time after it was
// created, so Pods ask for a device until the alert fires.
func (w *world) breakClaims() {
	w.t.Helper()
	manifest := func(verb, text string, flags ...string) {
		arguments := append([]string{verb, "--namespace=devices", "-f", "-"}, flags...)
		if _, err := w.KubectlInput(w.t.Context(), []byte(text), arguments...); err != nil {
			w.t.Fatal(err)
		}
	}
	remove := func() { manifest("delete", user, "--ignore-not-found", "--grace-period=1") }
	manifest("apply", refusal, "--server-side")
	w.firesWhile("AkriInstancesUnwritable", func(int) {
		phase := w.kubectl("get", "--namespace=devices", "--ignore-not-found", "pod/user", "-o", "jsonpath={.status.phase}")
		if phase == "Running" || phase == "Failed" { // the policy was not in force, or has refused it
			remove()
		}
		if phase != "Pending" {
			manifest("apply", user, "--server-side")
		}
	})
	manifest("delete", refusal)
	remove()
	w.quiet()
}

// silence is a policy that refuses the status of Configurations in the namespace devices.
const silence = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: refuse-status}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [akri.sh], apiVersions: [v0], operations: [UPDATE], resources: [configurations/status]}]
  validations:
  - {expression: "object.metadata.namespace != 'devices'", reason: Forbidden}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: refuse-status}
spec: {policyName: refuse-status, validationActions: [Deny]}
`

// breakStatus refuses the status that the controller writes: an error that no condition can
// report.
func (w *world) breakStatus() {
	w.t.Helper()
	w.apply(silence)
	w.firesWhile("AkriReconcileErrors", w.editing("cameras"))
	w.kubectl("delete", "validatingadmissionpolicybinding/refuse-status", "validatingadmissionpolicy/refuse-status")
	w.quiet()
}

// breakUpgrade leaves an upgrade unfinished: the discovery handler has another version than
// the rest.
func (w *world) breakUpgrade() {
	w.t.Helper()
	image, archive, err := akri.BuildDiscovery(w.t.Context(), w.programs, "v0.0.1", os.Stderr)
	if err == nil {
		err = w.Load(w.t.Context(), archive)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	const handler = "daemonset/akri-debug-echo-discovery"
	w.kubectl("set", "image", "--namespace=akri-system", handler, "debug-echo="+image)
	w.fires("AkriVersionSkew")
	w.kubectl("rollout", "undo", "--namespace=akri-system", handler)
	w.kubectl("rollout", "status", "--namespace=akri-system", handler, "--timeout=60s")
	w.quiet()
}

// breakDiscovery freezes the handler, takes it away, which the devices outlive, and then
// unplugs them. A second handler looks for a device that does not answer.
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

// silent is a Configuration whose only device does not answer: its address is reserved
// for documentation.
const silent = `
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: silent}
spec:
  discoveryHandler:
    name: http
    discoveryDetails: "{urls: ['http://192.0.2.1/'], intervalSeconds: 1, timeoutSeconds: 1}"
`

// breakDevice looks for a device that does not answer.
func (w *world) breakDevice() {
	w.t.Helper()
	if err := akri.InstallHandler(w.t.Context(), w.Cluster, w.programs, "http"); err != nil {
		w.t.Fatal(err)
	}
	// As the component open-metrics does, which the installation of a handler does not have.
	w.kubectl("patch", "--namespace=akri-system", "daemonset/akri-http-discovery", "--type=json", "--patch",
		`[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--metrics-bind-address=:8080"}]`)
	w.kubectl("rollout", "status", "--namespace=akri-system", "daemonset/akri-http-discovery", "--timeout=60s")
	w.apply(silent)
	w.fires("AkriDiscoveryHandlerFailures")
	w.kubectl("delete", "--namespace=devices", "configuration", "silent")
	w.quiet()
}

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
	invalid, _, _ := strings.Cut(broken, "---\n")
	w.firesWhile("AkriWebhookRejecting", func(int) { create(invalid) })
	w.quiet()
	w.kubectl("scale", "--namespace=akri-system", "deployment/akri-webhook", "--replicas=0")
	w.fires("AkriWebhookDown")
	w.firesWhile("AkriWebhookUnreachable", func(int) { create(rejected) })
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
