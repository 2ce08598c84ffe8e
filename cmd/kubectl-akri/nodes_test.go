package main

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
)

func TestNodes(t *testing.T) {
	w := newWorld(t)
	w.run("", "nodes", "-n", w.Namespace).want(t, 0, "NODE", "note: Akri's controller is not in namespace", "note: Akri's agent is not in",
		"→ without -n")
	node, bare := w.Namespace+"-a", w.Namespace+"-b" // Nodes are those of other tests, too
	w.Apply(example + `
---
apiVersion: v1
kind: Pod
metadata: {name: agent, labels: {app.kubernetes.io/name: akri-agent, app.kubernetes.io/part-of: akri}}
spec: {nodeName: ` + node + `, containers: [{name: agent, image: "agent:v1.2.3"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: stranger, labels: {app.kubernetes.io/name: other}}
spec: {nodeName: node-d, containers: [{name: agent, image: agent}]}
`)
	for _, name := range []string{node, bare} {
		object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := w.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = w.Delete(context.Background(), object) }) // the context of t is cancelled here
	}
	var pod corev1.Pod
	w.Read("agent", &pod)
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	var cam v0.Configuration
	w.Read("cam", &cam)
	cam.Status.DiscoveryFailures = []v0.DiscoveryFailure{{Node: node, Handler: "onvif", Message: "no route"}}
	for _, object := range []client.Object{&pod, &cam} {
		if err := w.Status().Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	w.Instance("cam", "cam-8120fe", nil)

	w.run("", "nodes", "-n", w.Namespace).want(t, 0, "NODE", node, "ready", "v1.2.3", bare, "none", "discovery of "+w.Namespace+"/cam fails",
		"!node-d")
	w.run("", "nodes", node, "-n", w.Namespace).want(t, 0, "Node "+node+"  agent ready", "agent", "no route", "!"+bare)
	w.run("", "nodes", "node-z", "-n", w.Namespace).want(t, 1, `error: node "node-z": it has no agent and no device`)
	w.run("", "nodes", node, "-n", w.Namespace, "-o", "yaml").want(t, 0, "- agent: ready", "failures:", "message: no route", "version: v1.2.3")
	run(t, "", "nodes", "-o", "xml").want(t, 2, "use json or yaml")
	run(t, "", "nodes", "a", "b").want(t, 2, "error: ")

	w.as("lister", `[{apiGroups: [""], resources: [pods], verbs: [list]},`+
		`{apiGroups: [akri.sh], resources: [configurations, instances], verbs: [list]}]`).
		run("", "nodes", "-n", w.Namespace).want(t, 0, node, "ready", "note: no permission to list DaemonSets", "no permission to list Nodes",
		"no permission to list Instances in other namespaces, so")
}
