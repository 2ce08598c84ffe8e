package attacks

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/kubebox/clustertest"
)

// owned is a Configuration that the ownership tests attack: one ConfigMap of the
// group, one for each device.
func owned(name string) object {
	return configuration(name, spec{
		devices: []string{name}, group: []string{configMap(name+"-group", "v")}, instance: []string{configMap("{{INSTANCE_NAME}}", "v")},
	})
}

// start creates a Configuration as the administrator and waits until it is Ready.
func (w *world) start(c object, devices int) object {
	w.t.Helper()
	w.must(w.admin.create(c))
	w.instances(c.name(), devices)
	w.await(c.name(), "Ready", "True")
	return w.find("Configuration", c.name())
}

// victim creates a ConfigMap that belongs to nobody.
func (w *world) victim(name string) object {
	w.t.Helper()
	return w.must(w.admin.create(parse(configMap(name, "victim")))).object()
}

// untouched fails the test if an object was changed or deleted.
func (w *world) untouched(o object) {
	w.t.Helper()
	now := w.findIn(o.text("kind"), o.namespace(), o.name())
	switch {
	case now == nil || now.uid() != o.uid() || now.terminating():
		w.t.Errorf("%s %s was deleted", o.text("kind"), o.name())
	case now.text("metadata", "resourceVersion") != o.text("metadata", "resourceVersion"):
		w.t.Errorf("%s %s was changed: %.2000s", o.text("kind"), o.name(), now.json())
	}
}

// entry is an entry of status.resources that claims an object.
func entry(o object) string {
	return fmt.Sprintf("{version: v1, kind: ConfigMap, namespace: %q, name: %q, uid: %q, intent: x, template: 0}",
		o.namespace(), o.name(), o.uid())
}

// An invented status deletes nothing.
func TestInventedStatus(t *testing.T) {
	w := newWorld(t)
	mine, others := w.victim("victim"), parse(configMap("victim-elsewhere-"+w.namespace, "victim"))
	others["metadata"].(map[string]any)["namespace"] = "default"
	others = w.must(w.admin.create(others)).object()
	t.Cleanup(func() {
		w.api.send(contextWithout(t), request{method: "DELETE", path: pathOf("ConfigMap", "default", others.name())})
	})
	author := w.as("author", configurationsOnly, rule{"akri.sh", "configurations/status,instances/status,instances", "*"})
	w.start(owned("status"), 1)
	instance := w.instances("status", 1)[0]

	poison := fmt.Sprintf("status: {resources: [%s, %s]}", entry(mine), entry(others))
	t.Run("by a user", func(t *testing.T) {
		w := w.sub(t)
		w.refuse("the status of a Configuration", author.patch("Configuration/status", w.namespace, "status", poison))
		w.refuse("the status of an Instance", author.patch("Instance/status", w.namespace, instance.name(), poison))
	})
	t.Run("that a new controller finds", func(t *testing.T) {
		w := w.sub(t)
		w.withoutPolicies(func() {
			w.withoutController(func() {
				w.must(w.admin.patch("Configuration/status", w.namespace, "status", poison))
				w.must(w.admin.patch("Instance/status", w.namespace, instance.name(), poison))
			})
		})
		w.converged("after-status")
		w.must(w.admin.patch("Configuration", w.namespace, "status", "spec: {configurationBrokerResources: null}"))
		w.converged("after-prune")
		w.eventually("control: the group's own object is pruned", func() string {
			if w.find("ConfigMap", "status-group") != nil {
				return "it exists"
			}
			return ""
		})
		w.must(w.admin.delete("Configuration", w.namespace, "status"))
		w.converged("after-deletion")
		w.untouched(mine)
		w.untouched(others)
	})
}

// withoutPolicies runs a function while the policies deny nothing.
func (w *world) withoutPolicies(f func()) {
	w.t.Helper()
	set := func(action string) {
		patch := func(binding string) {
			w.must(w.admin.patch("ValidatingAdmissionPolicyBinding", "", binding, "spec: {validationActions: ["+action+"]}"))
		}
		for _, binding := range w.list("ValidatingAdmissionPolicyBinding", "") {
			if name := binding.name(); strings.HasPrefix(name, "akri-") && name != probedPolicy {
				patch(name)
			}
		}
		patch(probedPolicy) // the last one: API servers read them in their order
		w.policiesApply(action == "Deny")
	}
	defer set("Deny")
	set("Audit")
	f()
}

// probedPolicy is the binding that decides whether policiesApply finds that all apply.
const probedPolicy = "akri-agents-instances"

// policiesApply waits until the policies apply, or no longer do.
func (w *world) policiesApply(want bool) {
	w.t.Helper()
	agent := w.agentOf("no-such-node")
	probe := parse(`
apiVersion: akri.sh/v0
kind: Instance
metadata: {name: probe-abcdef}
spec: {configurationName: probe, cdiName: akri.sh/probe=abcdef, capacity: 1, nodes: [node1]}
`)
	w.eventually(fmt.Sprintf("policies apply: %v", want), func() string {
		if a := agent.create(probe, "dryRun", "All"); a.ok() == want {
			return a.String()
		}
		return ""
	})
}

// Labels alone neither delete an object nor keep others from being pruned.
func TestInventedLabels(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	parent := w.start(owned("labels"), 1)
	instance := w.instances("labels", 1)[0]
	labels := func(uid, instance string) string {
		text := fmt.Sprintf("app.kubernetes.io/managed-by: akri, akri.sh/configuration: labels, akri.sh/namespace: %s, akri.sh/owner: %q",
			w.namespace, uid)
		if instance != "" {
			text += ", akri.sh/instance: " + instance
		}
		return text
	}
	elsewhere := w.namespace + "-b"
	w.must(w.admin.create(parse("{apiVersion: v1, kind: Namespace, metadata: {name: " + elsewhere + "}}")))
	t.Cleanup(func() {
		w.api.send(contextWithout(t), request{method: "DELETE", path: pathOf("Namespace", "", elsewhere)})
	})
	patcher := w.impersonate("patcher-"+w.namespace, nil)
	w.grant(patcher, elsewhere, rule{"", "configmaps", "get,patch"})
	w.grant(patcher, w.namespace, rule{"", "configmaps", "get,patch"})

	var victims []object
	for i, text := range []string{labels(parent.uid(), ""), labels(instance.uid(), instance.name())} {
		for _, namespace := range []string{elsewhere, w.namespace} {
			victim := parse(configMap(fmt.Sprintf("labelled-%d", i), "victim"))
			victim["metadata"].(map[string]any)["namespace"] = namespace
			w.must(w.admin.create(victim))
			w.refuse("control: deletion by a user who may patch", patcher.delete("ConfigMap", namespace, victim.name()))
			labelled := w.must(patcher.patch("ConfigMap", namespace, victim.name(), "metadata: {labels: {"+text+"}}")).object()
			labelled["kind"] = "ConfigMap"
			victims = append(victims, labelled)
		}
	}
	w.must(w.admin.patch("Configuration", w.namespace, "labels",
		"spec: {configurationBrokerResources: [{apiVersion: v1, kind: ConfigMap, metadata: {name: labels-new}}]}"))
	w.await("labels", "Applied", "True")
	w.eventually("control: the former object is pruned", func() string {
		if w.find("ConfigMap", "labels-group") != nil {
			return "it exists"
		}
		return ""
	})
	for _, victim := range victims {
		w.untouched(victim)
	}
	w.must(w.admin.delete("Configuration", w.namespace, "labels"))
	w.eventually("the Configuration goes", func() string {
		if o := w.find("Configuration", "labels"); o != nil {
			return string(o.json())
		}
		return ""
	})
	w.converged("after-labels")
	for _, victim := range victims {
		w.untouched(victim)
	}
}

// Labels under the controller's field manager, on an object that cannot be deleted,
// hold up neither the parent that they name nor its deletion.
func TestForgedObject(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	parent := w.start(owned("forged-parent"), 1)
	other := newWorld(t)
	author := other.as("author", rule{"", "configmaps", "get,create,patch"})
	forged := parse(configMap("forged", "v")).set([]string{"example.com/hold"}, "metadata", "finalizers").set(map[string]any{
		"app.kubernetes.io/managed-by": "akri", "akri.sh/configuration": parent.name(), "akri.sh/namespace": w.namespace,
		"akri.sh/owner": parent.uid(),
	}, "metadata", "labels")
	other.must(author.apply(forged, "fieldManager", "akri-controller"))
	w.must(w.admin.patch("Configuration", w.namespace, parent.name(), "spec: {configurationBrokerResources: null}"))
	w.await(parent.name(), "Applied", "True")
	w.eventually("control: the group's own object is pruned", func() string {
		if w.find("ConfigMap", "forged-parent-group") != nil {
			return "it exists"
		}
		return ""
	})
	w.must(w.admin.delete("Configuration", w.namespace, parent.name()))
	w.eventually("the Configuration goes", func() string {
		if o := w.find("Configuration", parent.name()); o != nil {
			return string(o.json())
		}
		return ""
	})
	other.must(other.admin.patch("ConfigMap", other.namespace, "forged", "metadata: {finalizers: null}"))
}

// An edit under the controller's own field manager is repaired like any other, unless it is of
// the same second as the controller's apply.
func TestBorrowedFieldManager(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	w.start(owned("manager"), 1)
	editor := w.as("editor", rule{"", "configmaps", "get,patch"})
	repaired := func(what string) {
		t.Helper()
		w.within(timeout/4, what+" is repaired", func() string {
			if value := w.find("ConfigMap", "manager-group").text("data", "k"); value != "v" {
				return value
			}
			return ""
		})
	}
	w.must(editor.patch("ConfigMap", w.namespace, "manager-group", "data: {k: edited}"))
	repaired("control: an edit")
	for _, force := range []string{"true", "false"} {
		live, found := w.find("ConfigMap", "manager-group"), time.Now()
		w.within(timeout/4, "another second", func() string {
			if time.Since(found) < time.Second {
				return "the managed fields would have the same time"
			}
			return ""
		})
		forged := object{
			"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"k": "forged"},
			"metadata": map[string]any{
				"name": "manager-group", "labels": live.at("metadata", "labels"), "ownerReferences": live.at("metadata", "ownerReferences"),
			},
		}
		w.must(editor.apply(forged, "fieldManager", "akri-controller", "force", force))
		repaired("an apply under the controller's name")
	}
}

// A finalizer of Akri's, written by somebody else, does not keep objects for ever.
func TestBorrowedFinalizer(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	author := w.as("author", configurationsOnly)
	c := configuration("finalizer", spec{devices: []string{"d"}})
	c["metadata"].(map[string]any)["finalizers"] = []string{"akri.sh/cleanup"}
	w.must(author.create(c))
	instance := w.instances("finalizer", 1)[0]
	w.admin.patch("Instance", w.namespace, instance.name(), "metadata: {finalizers: [akri.sh/cleanup]}")
	w.observed("finalizer")
	w.must(author.delete("Configuration", w.namespace, "finalizer"))
	w.within(timeout/4, "the deletion", func() string {
		if o := w.find("Configuration", "finalizer"); o != nil {
			return string(o.json())
		}
		if o := w.find("Instance", instance.name()); o != nil {
			return string(o.json())
		}
		return ""
	})
}

// Two Configurations never share an object: the second gets a Conflict.
func TestTwoConfigurationsOneObject(t *testing.T) {
	clustertest.Full(t)
	for what, directives := range map[string][]string{
		"plain":    nil,
		"orphaned": {"deletion-policy", "orphan"},
		"taken":    {"on-conflict", "adopt"},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			claim := func(name, value string) object {
				return configuration(name, spec{devices: []string{"d"}, group: []string{annotated(configMap("both", value), directives...)}})
			}
			suffix := strings.TrimPrefix(w.namespace, "attack-")
			w.start(claim("one-"+suffix, "one"), 1)
			before := w.find("ConfigMap", "both")
			w.must(w.admin.create(claim("two-"+suffix, "two")))
			w.instances("two-"+suffix, 1)
			w.await("two-"+suffix, "Applied", "False Conflict")
			before["kind"] = "ConfigMap"
			w.untouched(before)
			if condition := w.find("Configuration", "one-"+suffix).condition("Applied"); !strings.HasPrefix(condition, "True") {
				t.Errorf("the first Configuration: %s", condition)
			}
		})
	}
}

// on-conflict: adopt adopts what belongs to nobody, labelled or not, and nothing else.
func TestTake(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	take := func(name, o string) object {
		return configuration(name, spec{
			devices: []string{o}, group: []string{annotated(configMap(o, "taken"), "on-conflict", "adopt")},
		})
	}
	w.victim("nobodys")
	labelled := parse(configMap("labelled", "victim"))
	labelled["metadata"].(map[string]any)["labels"] = map[string]any{
		"app.kubernetes.io/managed-by": "akri", "akri.sh/configuration": "another", "akri.sh/owner": "no-such-uid",
		"akri.sh/namespace": "nowhere",
	}
	w.must(w.admin.create(labelled))
	owner := w.victim("owner")
	foreign := parse(configMap("foreign", "victim"))
	foreign["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid(), "controller": true,
	}}
	foreign = w.must(w.admin.create(foreign)).object()

	for _, name := range []string{"nobodys", "labelled"} {
		w.must(w.admin.create(take("take-"+name, name)))
		w.within(timeout/4, "control: "+name+" is taken", func() string {
			if value := w.find("ConfigMap", name).text("data", "k"); value != "taken" {
				return value + w.find("Configuration", "take-"+name).condition("Applied")
			}
			return ""
		})
	}
	w.must(w.admin.create(take("take-foreign", "foreign")))
	w.await("take-foreign", "Applied", "False Conflict")
	w.untouched(foreign)
}

// A device does not choose which existing object is taken over, with and without the
// webhook.
func TestDeviceChoosesWhatIsTaken(t *testing.T) {
	w := newWorld(t)
	victim := w.victim("chosen")
	author := w.as("author", configurationsOnly, rule{"", "configmaps", "get,create,patch,delete"})
	take := func(name string) object {
		return configuration("device-take", spec{devices: []string{"chosen"}, instance: []string{
			annotated(configMap(name, "{{INSTANCE_NAME}}"), "on-conflict", "adopt"),
		}})
	}
	const byDevice = "{{INSTANCE_PROPERTIES.DEBUG_ECHO_DESCRIPTION}}"
	w.must(author.create(take("{{INSTANCE_NAME}}"), "dryRun", "All")) // control: the author may take what the device does not name
	w.refuse("a name that the device chooses", author.create(take(byDevice)), "which would decide which existing object is adopted")
	w.skipWebhook()
	w.must(author.create(take(byDevice)))
	instance := w.instances("device-take", 1)[0].name()
	w.eventually("the refusal", func() string {
		if applied := w.find("Instance", instance).condition("Applied"); !strings.HasPrefix(applied, "False InvalidTemplate") {
			return "Applied: " + applied
		}
		return ""
	})
	w.untouched(victim)
}
