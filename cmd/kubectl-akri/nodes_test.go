package main

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func agentPod(name, node string) string {
	return `
apiVersion: v1
kind: Pod
metadata: {name: ` + name + `, labels: {app.kubernetes.io/name: akri-agent}}
spec: {nodeName: ` + node + `, containers: [{name: agent, image: agent}]}
`
}

// TestNodes shows agents that cannot be read: there is no kubelet here.
func TestNodes(t *testing.T) {
	w := newWorld(t)
	w.run("", "nodes", "-n", w.Namespace).want(t, 1, `error: no agents in namespace "`+w.Namespace+`": specify the namespace`, "-n")
	w.Apply(agentPod("old", "node-a") + "---" + agentPod("running", "node-a") + "---" + agentPod("pending", "node-b") + `
---
apiVersion: v1
kind: Pod
metadata: {name: unscheduled, labels: {app.kubernetes.io/name: akri-agent}}
spec:
  containers: [{name: agent, image: agent}]
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
    {matchFields: [{key: metadata.name, operator: In, values: [node-c]}]}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: stranger, labels: {app.kubernetes.io/name: other}}
spec: {nodeName: node-d, containers: [{name: agent, image: agent}]}
`)
	for name, phase := range map[string]corev1.PodPhase{"old": corev1.PodFailed, "running": corev1.PodRunning} {
		var pod corev1.Pod
		w.Read(name, &pod)
		pod.Status.Phase = phase
		if err := w.Status().Update(t.Context(), &pod); err != nil {
			t.Fatal(err)
		}
	}
	got := w.run("", "nodes", "-n", w.Namespace, "--timeout", "5s")
	got.want(t, 0, "NODE", "AGENT", "node-a", "unknown", "node-b", "unknown", "node-c", "unknown",
		"node-a: ", "node-b: Pod pending is Pending", "node-c: Pod unscheduled is Pending", "!node-d", "!Pod old")
	if _, reason, _ := strings.Cut(got.out, "node-a: "); !strings.Contains(reason, "node-a") {
		t.Errorf("the reason does not name the missing node:\n%s", got.out) // nodes "node-a" not found
	}
	w.run("", "nodes", "node-b", "-n", w.Namespace).want(t, 0, "Node node-b  agent unknown: Pod pending is Pending", "!node-a")
	w.run("", "nodes", "node-z", "-n", w.Namespace).want(t, 1, `error: no agent on node "node-z"`)
	w.run("", "nodes", "-n", w.Namespace, "-o", "yaml").want(t, 0, "- namespace: "+w.Namespace, "problem: Pod pending is Pending")
	run(t, "", "nodes", "-o", "xml").want(t, 2, "-o xml: use json or yaml")
	run(t, "", "nodes", "a", "b").want(t, 2, "error: ")

	lister := w.as("lister", `[{apiGroups: [""], resources: [pods], verbs: [list]},`+
		`{apiGroups: [akri.sh], resources: [configurations, instances], verbs: [list]}]`)
	lister.run("", "nodes", "-n", w.Namespace).want(t, 0, "node-a: ", `cannot`, `"pods/portforward"`, "Pod pending is Pending")

	var pods corev1.PodList
	if err := w.List(t.Context(), &pods, client.InNamespace(w.Namespace)); err != nil || len(pods.Items) != 5 {
		t.Errorf("the Pods were changed: %v", err)
	}
}

// TestNodesWithoutAnAgent names them, and says whether they are ready.
func TestNodesWithoutAnAgent(t *testing.T) {
	w := newWorld(t)
	w.Apply(agentPod("pending", "node-b"))
	bare := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-bare"}}
	if err := w.Create(t.Context(), bare); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Delete(context.Background(), bare); err != nil { // the context of t is cancelled here
			t.Error(err)
		}
	})
	w.run("", "nodes", "-n", w.Namespace, "--timeout", "5s").want(t, 0, "node-b: Pod pending", "note: no agent runs on node-bare (not ready);")
	bare.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if err := w.Status().Update(t.Context(), bare); err != nil {
		t.Fatal(err)
	}
	w.run("", "nodes", "-n", w.Namespace, "--timeout", "5s").want(t, 0, "note: no agent runs on node-bare;")
}
