package attacks

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"akri.sh/akri/kubebox/cluster"
	"akri.sh/akri/kubebox/clustertest"
)

// gadgets is the CRD of a kind that the tests change.
func gadgets(scope string, versions ...string) object {
	var all []any
	for i, version := range versions {
		all = append(all, map[string]any{
			"name": version, "served": true, "storage": i == 0,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "properties": map[string]any{"spec": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		})
	}
	return object{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "gadgets.attacks.akri.sh"},
		"spec": map[string]any{
			"group": "attacks.akri.sh", "scope": scope, "versions": all,
			"names": map[string]any{"kind": "Gadget", "listKind": "GadgetList", "plural": "gadgets", "singular": "gadget"},
		},
	}
}

// installGadgets installs the CRD for the test.
func (w *world) installGadgets(scope string, versions ...string) {
	w.t.Helper()
	crd := gadgets(scope, versions...)
	w.must(w.admin.create(crd))
	w.cleanup((*world).removeGadgets)
	w.eventually("the CRD", func() string {
		if condition := w.find(crd.text("kind"), crd.name()).condition("Established"); !strings.HasPrefix(condition, "True") {
			return condition
		}
		return ""
	})
}

// removeGadgets deletes the CRD, and waits until a CRD of that name can be installed
// again. A CRD that does not exist is no error.
func (w *world) removeGadgets() {
	w.t.Helper()
	if w.find("CustomResourceDefinition", "gadgets.attacks.akri.sh") != nil {
		w.must(w.admin.delete("CustomResourceDefinition", "", "gadgets.attacks.akri.sh"))
	}
	w.eventually("the CRD goes", func() string {
		if w.find("CustomResourceDefinition", "gadgets.attacks.akri.sh") != nil {
			return "it exists"
		}
		return ""
	})
}

func gadget(version, name string) string {
	return fmt.Sprintf("{apiVersion: attacks.akri.sh/%s, kind: Gadget, metadata: {name: %q}, spec: {}}", version, name)
}

// Two versions of one kind work side by side, and a kind that comes back with another
// scope is noticed.
func TestKindsThatChange(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	w.installGadgets("Namespaced", "v1", "v2")
	w.grantController(rule{"attacks.akri.sh", "gadgets", "get,list,watch,create,patch,delete"})
	w.eventually("admission", func() string { // the webhook notices the kind
		a := w.admin.apply(configuration("gadgets", spec{devices: []string{"d"}, group: []string{gadget("v1", "one"), gadget("v2", "two")}}))
		if !a.ok() {
			return a.String()
		}
		return ""
	})
	w.instances("gadgets", 1)
	w.await("gadgets", "Applied", "True")
	w.removeGadgets()
	w.installGadgets("Cluster", "v1", "v2")
	w.await("gadgets", "Applied", "False Refused")
	if a := w.admin.send(request{method: "GET", path: "/apis/attacks.akri.sh/v1/gadgets"}); a.contains(`"name":"one"`) {
		t.Errorf("a cluster-scoped object was made: %v", a)
	}
}

// A watch that dies is reported within a minute: in a condition and a metric.
func TestWatchThatDies(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	w.installGadgets("Namespaced", "v1")
	w.grantController(rule{"attacks.akri.sh", "gadgets", "get,list,watch,create,patch,delete"})
	w.eventually("admission", func() string {
		a := w.admin.apply(configuration("watched", spec{devices: []string{"d"}, group: []string{gadget("v1", "one")}}))
		if !a.ok() {
			return a.String()
		}
		return ""
	})
	w.instances("watched", 1)
	w.await("watched", "Ready", "True")
	w.revokeController()
	crd := gadgets("Namespaced", "v1", "v3") // an update of the CRD ends its watches
	w.must(w.admin.apply(crd))
	took := w.within(2*timeout, "the dead watch in the metric", func() string {
		if w.metric("akri-controller", `akri_controller_watches\{state="failing"\}`) == 0 {
			return "0"
		}
		return ""
	})
	t.Logf("in the metric after %v", took)
	w.within(2*timeout, "the dead watch in a condition", func() string {
		if condition := w.find("Configuration", "watched").condition("Applied"); !strings.HasPrefix(condition, "False Forbidden") {
			return condition
		}
		return ""
	})
}

// A device that is plugged in again, before the former objects are deleted, waits for
// them: that is no Conflict.
func TestReplug(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	w.start(configuration("replug", spec{devices: []string{"r0"}, instance: []string{configMap("{{INSTANCE_NAME}}", "v")}}), 1)
	before := w.find("ConfigMap", w.instances("replug", 1)[0].name())
	collector := func(action cluster.Action) {
		t.Helper()
		if err := w.Do(contextWithout(t), action, "kube-controller-manager"); err != nil {
			t.Fatal(err)
		}
	}
	collector(cluster.Pause)
	resume := sync.OnceFunc(func() { collector(cluster.Resume) })
	defer resume()
	w.setDevices("OFFLINE")
	defer w.setDevices("ONLINE")
	w.instances("replug", 0)
	w.setDevices("ONLINE")
	w.instances("replug", 1)
	w.converged("after-replug")
	resume()
	w.eventually("the object is made again", func() string {
		if now := w.find("ConfigMap", before.name()); now == nil || now.uid() == before.uid() {
			return "not yet"
		}
		return ""
	})
	w.await("replug", "Ready", "True")
	w.noEvent("Conflict")
}

// setDevices plugs debugEcho's devices in (ONLINE) or out (OFFLINE).
func (w *world) setDevices(state string) {
	w.t.Helper()
	file := filepath.Join(w.AkriDir("node1"), "debug-echo", "debug-echo-availability.txt")
	if err := os.WriteFile(file, []byte(state+"\n"), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// noEvent fails the test if an Event in the namespace has a reason.
func (w *world) noEvent(reason string) {
	w.t.Helper()
	for _, event := range w.list("Event", w.namespace) {
		if event.text("reason") == reason {
			w.t.Errorf("Event %s of %s: %s", reason, event.text("involvedObject", "name"), event.text("message"))
		}
	}
}

// A device that fails holds a rollout up only as long as it exists.
func TestRolloutWithoutTheBrokenDevice(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	template := func(ok string) string {
		return annotated(configMap("{{INSTANCE_NAME}}", ok), "ready-when", `self.data.k.startsWith("yes")`)
	}
	rollout := func(template string) object {
		return configuration("rollout", spec{instance: []string{template}, more: "{rollout: {maxUnavailable: 1}}"})
	}
	w.must(w.admin.create(rollout(template("yes-1"))))
	names := []string{"rollout-aaaaaa", "rollout-bbbbbb", "rollout-cccccc"}
	for _, name := range names {
		w.publish("rollout", name)
	}
	w.await("rollout", "Ready", "True")
	w.must(w.admin.apply(rollout(template("no-2"))))
	updated := func() (found []string) {
		for _, name := range names {
			if o := w.find("ConfigMap", name); o.text("data", "k") == "no-2" {
				found = append(found, name)
			}
		}
		return found
	}
	w.eventually("the first device is updated", func() string {
		if len(updated()) == 0 {
			return "none"
		}
		return ""
	})
	w.converged("after-broken")
	first := updated()
	if len(first) != 1 {
		t.Fatalf("control: the rollout does not wait for the broken device: %v", first)
	}
	w.must(w.agentOf(ghost).delete("Instance", w.namespace, first[0]))
	w.eventually("the rollout goes on", func() string {
		if now := updated(); len(now) == 0 || len(now) == 1 && now[0] == first[0] {
			return fmt.Sprint(now)
		}
		return ""
	})
}

// ghost is a node that publishes Instances for the tests. There is no such node, so
// the controller removes them after half a minute.
const ghost = "ghost"

// publish creates an Instance of a Configuration as the agent of the node ghost.
func (w *world) publish(configuration, name string) {
	w.t.Helper()
	owner := w.find("Configuration", configuration)
	w.must(w.agentOf(ghost).create(parse(fmt.Sprintf(`
apiVersion: akri.sh/v0
kind: Instance
metadata:
  name: %[1]s
  labels: {akri.sh/configuration: %[2]s, node.akri.sh/%[4]s: ""}
  ownerReferences: [{apiVersion: akri.sh/v0, kind: Configuration, name: %[2]s, uid: %[3]s, controller: true}]
spec: {configurationName: %[2]s, cdiName: "akri.sh/%[2]s=%[5]s", capacity: 1, shared: true, nodes: [%[4]s]}
`, name, configuration, owner.uid(), ghost, strings.TrimPrefix(name, configuration+"-")))))
}

// One refused deletion stops no other one.
func TestRefusedDeletion(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	names := []string{"a", "b", "c"}
	var group []string
	for _, name := range names {
		group = append(group, configMap(name, "v"))
	}
	w.start(configuration("refused", spec{devices: []string{"d"}, group: group}), 1)
	policy := "keep-" + w.namespace
	w.must(w.admin.create(parse(fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [DELETE], resources: [configmaps]}]
  validations:
  - expression: "oldObject.metadata.namespace != '%[2]s' || oldObject.metadata.name != 'a'"
`, policy, w.namespace))))
	w.must(w.admin.create(parse(fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, validationActions: [Deny]}
`, policy))))
	remove := func() {
		for _, kindName := range []string{"ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"} {
			w.api.send(contextWithout(t), request{method: "DELETE", path: pathOf(kindName, "", policy)})
		}
	}
	t.Cleanup(remove)
	w.eventually("control: the policy denies", func() string {
		if a := w.admin.send(request{
			method: "DELETE", path: pathOf("ConfigMap", w.namespace, "a"), query: queryOf([]string{"dryRun", "All"}),
		}); a.ok() {
			return "it is allowed"
		}
		return ""
	})
	w.must(w.admin.patch("Configuration", w.namespace, "refused", "spec: {configurationBrokerResources: null}"))
	w.eventually("the others are deleted", func() string {
		for _, name := range names[1:] {
			if w.find("ConfigMap", name) != nil {
				return name + " exists"
			}
		}
		return ""
	})
	w.await("refused", "Applied", "False PolicyDenied")
	remove()
}
