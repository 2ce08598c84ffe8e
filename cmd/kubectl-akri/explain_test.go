package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"akri.sh/akri/cmd/kubectl-akri/view"
)

func TestExplain(t *testing.T) {
	w := newWorld(t)
	stop := w.startController()
	w.Apply(changed(t, `{name: "{{INSTANCE_NAME}}-svc"}`,
		`{name: "{{NODE}}-svc", annotations: {akri.sh/for-each: NODES, akri.sh/once: "true"}}`))
	w.Instance("cam", "cam-1", map[string]string{"TEXT": "foo", "ROOM": "hall"})
	w.waitReady("cam")
	stop()
	theirs := &corev1.ConfigMap{ObjectMeta: w.Meta("cam-1")}
	if err := w.Patch(t.Context(), theirs, client.RawPatch(types.MergePatchType, []byte(`{"data":{"theirs":"x"}}`)),
		client.FieldOwner("other")); err != nil {
		t.Fatal(err)
	}
	from := "Configuration " + w.Namespace + "/cam, generation 1"

	// All names of a kind.
	for _, args := range [][]string{{"cm", "cam-1"}, {"configmaps/cam-1"}, {"ConfigMap", "cam-1"}, {"configmap.v1./cam-1"}} {
		w.run("", append([]string{"explain"}, args...)...).want(t, 0,
			"ConfigMap "+w.Namespace+"/cam-1\n  template   instanceBrokerResources[0] of "+from, "for        Instance cam-1", "state      ready",
			"data.text = foo in hall", "{{INSTANCE_PROPERTIES.TEXT}} in",
			"INSTANCE_PROPERTIES.TEXT = foo  (property of the device, from debugEcho)",
			"INSTANCE_PROPERTIES.ROOM = hall  (spec.brokerProperties of the Configuration)",
			"metadata.name = cam-1", "Fields of other managers:", "other (Update): data.theirs")
	}
	w.run("", "explain", "svc", "node-a-svc").want(t, 0,
		"template   instanceBrokerResources[1]", "for each   node-a", "NODE = node-a", "akri.sh/for-each: NODES", "akri.sh/once: true")
	w.run("", "explain", "secret", "cam-1-key").want(t, 0, "instanceBrokerResources[2]", "metadata.name = cam-1-key", "!GEHEIM")
	w.run("", "explain", "cm", "group").want(t, 0, "template   configurationBrokerResources[0] of "+from, "data.nodes = on node-a",
		"!Instance cam-1")

	var e view.Explanation
	if err := json.Unmarshal([]byte(w.run("", "explain", "cm/cam-1", "-o", "json").out), &e); err != nil ||
		e.Template != "instanceBrokerResources[0]" || len(e.Fields) != 2 {
		t.Errorf("-o json: %v %+v", err, e)
	}
	w.run("", "explain", "cm/cam-1", "-o", "yaml").want(t, 0, "configuration: "+w.Namespace+"/cam\n")

	// An object without a template, and one whose template has changed.
	w.Apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: foreign}\ndata: {a: b}")
	w.run("", "explain", "cm", "foreign").want(t, 1, "error: ConfigMap "+w.Namespace+"/foreign was not created by Akri: ", "set by test")
	w.run("", "explain", "akrii", "cam-1").want(t, 1, "is not created from a template: use kubectl akri tree")
	w.run("", "explain", "cm", "nope").want(t, 1, `error: configmaps "nope" not found`)
	w.run("", "explain", "zebra", "nope").want(t, 1, `error: the API server does not have a resource type "zebra"`)
	w.Apply(changed(t, `{name: group}`, `{name: other}`))
	w.run("", "explain", "cm", "group").want(t, 0, "configurationBrokerResources[0]", "generation 2",
		"no template renders an object of this name now")
	w.Apply(changed(t, "{{NODES}}", "{{NODE"))
	w.run("", "explain", "cm", "group").want(t, 0, "the templates have errors", "configurationBrokerResources[0].data.nodes")
}

// TestExplainFollowsOwners checks that a Pod is explained by the Deployment that Akri
// created, which is not its direct owner.
func TestExplainFollowsOwners(t *testing.T) {
	w := newWorld(t)
	w.startController()
	w.Apply(changed(t, "apiVersion: v1\n    kind: Service", "apiVersion: apps/v1\n    kind: Deployment",
		"{ports: [{port: 80}], selector: \"{{LABEL_SELECTOR}}\"}",
		"{selector: {matchLabels: \"{{LABEL_SELECTOR}}\"}, template: {spec: {containers: [{name: a, image: a}]}}}"))
	w.Instance("cam", "cam-1", map[string]string{"TEXT": "foo", "ROOM": "hall"})
	var deployment metav1.PartialObjectMetadata
	deployment.SetGroupVersionKind(appsKind("Deployment"))
	w.Eventually("Deployment", func() string {
		if err := w.Get(t.Context(), w.Key("cam-1-svc"), &deployment); err != nil {
			return err.Error()
		}
		return ""
	})
	owned := func(apiVersion, kind, name, uid, text string) string {
		return strings.NewReplacer("OWNER",
			"{apiVersion: "+apiVersion+", kind: "+kind+", name: "+name+", uid: "+uid+", controller: true}").Replace(text)
	}
	w.Apply(owned("apps/v1", "Deployment", "cam-1-svc", string(deployment.UID), `
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: set, ownerReferences: [OWNER]}
spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}}`))
	var set metav1.PartialObjectMetadata
	set.SetGroupVersionKind(appsKind("ReplicaSet"))
	if err := w.Get(t.Context(), w.Key("set"), &set); err != nil {
		t.Fatal(err)
	}
	w.Apply(owned("apps/v1", "ReplicaSet", "set", string(set.UID), `
apiVersion: v1
kind: Pod
metadata: {name: one, ownerReferences: [OWNER]}
spec: {containers: [{name: a, image: a}]}`))
	w.run("", "explain", "po/one").want(t, 0, "Pod "+w.Namespace+"/one is owned by Deployment.apps "+w.Namespace+"/cam-1-svc:",
		"instanceBrokerResources[1]")
}

// createPods creates a Pod that uses the device cam-1, one that waits for it, one that
// has failed on a node that does not see it, and one that does not request it.
func (w *world) createPods(t *testing.T) {
	t.Helper()
	w.Apply(`
apiVersion: v1
kind: Pod
metadata: {name: user}
spec: {nodeName: node-a, containers: [{name: a, image: a, resources: {limits: {akri.sh/cam-1: 1}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: waiter}
spec: {containers: [{name: a, image: a, resources: {limits: {akri.sh/cam-1: 1}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: rejected}
spec: {nodeName: node-b, containers: [{name: a, image: a, resources: {limits: {akri.sh/cam-1: 1}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: stranger}
spec: {containers: [{name: a, image: a}]}`)
	t.Cleanup(func() {
		// Pods of all namespaces count, so a second run would see these.
		options := []client.DeleteAllOfOption{client.InNamespace(w.Namespace), client.GracePeriodSeconds(0)}
		if err := w.DeleteAllOf(context.Background(), &corev1.Pod{}, options...); err != nil {
			t.Error(err)
		}
	})
	rejected := &corev1.Pod{ObjectMeta: w.Meta("rejected")}
	if err := w.Status().Patch(t.Context(), rejected, client.RawPatch(types.MergePatchType,
		[]byte(`{"status":{"phase":"Failed"}}`))); err != nil {
		t.Fatal(err)
	}
	waiter := &corev1.Pod{ObjectMeta: w.Meta("waiter")}
	const status = `{"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable",` +
		`"message":"0/1 nodes are available: 1 Insufficient akri.sh/cam-1."}]}}`
	if err := w.Status().Patch(t.Context(), waiter, client.RawPatch(types.MergePatchType, []byte(status))); err != nil {
		t.Fatal(err)
	}
	event := &corev1.Event{
		ObjectMeta: w.Meta("e"), Reason: "FailedScheduling", Message: "no room",
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: w.Namespace, Name: "waiter", UID: waiter.UID}, LastTimestamp: metav1.Now(),
	}
	if err := w.Create(t.Context(), event); err != nil {
		t.Fatal(err)
	}
}
