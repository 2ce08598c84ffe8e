package main

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"akri.sh/akri/cmd/kubectl-akri/migration"
)

// addNodes adds nodes that are ready.
func (w *world) addNodes(names ...string) {
	w.T.Helper()
	for _, name := range names {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := w.Create(w.T.Context(), node); err != nil {
			w.T.Fatal(err)
		}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		if err := w.Status().Update(w.T.Context(), node); err != nil {
			w.T.Fatal(err)
		}
		w.T.Cleanup(func() { _ = w.Delete(context.WithoutCancel(w.T.Context()), node) })
	}
}

// runKubelets sets the state of the containers of each node's Pods, as kubelets do, until the test ends.
func (w *world) runKubelets(states map[string]corev1.PodStatus) {
	ctx, cancel := context.WithCancel(w.T.Context())
	stopped := make(chan struct{})
	w.T.Cleanup(func() { cancel(); <-stopped })
	go func() {
		defer close(stopped)
		for ticker := time.NewTicker(50 * time.Millisecond); ; {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			var pods corev1.PodList
			if w.List(ctx, &pods, client.MatchingLabels(migration.PullLabels)) != nil {
				continue
			}
			for i := range pods.Items {
				pod := &pods.Items[i]
				pod.Status = states[pod.Spec.NodeName]
				_ = w.Status().Update(ctx, pod) // again, if it was deleted or changed
			}
		}
	}()
}

const pullManifests = `apiVersion: apps/v1
kind: DaemonSet
metadata: {name: akri-agent}
spec: {template: {spec: {containers: [{name: agent, image: registry.example/akri/agent:v1}]}}}
`

// TestMigratePull pulls images on two nodes. On one it fails, and then on none.
func TestMigratePull(t *testing.T) {
	w := newWorld(t)
	w.addNodes("pull-one", "pull-two")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "default"}}
	if err := w.Create(t.Context(), account); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	pulled := corev1.PodStatus{Phase: corev1.PodSucceeded}
	missing := corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
		Name:  "image-0",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "not found"}},
	}}}
	for _, test := range []struct {
		name, stdin string
		second      corev1.PodStatus
		code        int
		want        []string
	}{
		{"pulled", pullManifests, pulled, 0, []string{
			"pull-one  registry.example/akri/agent:v1\n", "pull-two  registry.example/akri/agent:v1\n",
		}},
		{"missing", pullManifests, missing, 1, []string{
			"error: node pull-two: image registry.example/akri/agent:v1: ImagePullBackOff: not found", "Nothing of Akri was changed",
		}},
		{"slow", pullManifests, corev1.PodStatus{Phase: corev1.PodPending}, 1, []string{"node pull-two has not pulled its images in time"}},
		{"no manifests", "", pulled, 1, []string{"the manifests have no Pods"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			here := *w
			inner := *w.World
			inner.T = t
			here.World = &inner
			here.runKubelets(map[string]corev1.PodStatus{"pull-one": pulled, "pull-two": test.second})
			timeout := "1m"
			if test.name == "slow" {
				timeout = "3s"
			}
			here.run(test.stdin, "migrate", "pull", "-n", w.Namespace, "--timeout", timeout).want(t, test.code, test.want...)
			var pods corev1.PodList
			if err := w.List(t.Context(), &pods, client.InNamespace(w.Namespace)); err != nil || len(pods.Items) > 0 {
				t.Errorf("%d Pods are left: %v", len(pods.Items), err)
			}
		})
	}
}
