package helm_test

import (
	"context"
	"io"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// checkObjects are the kinds of the hooks of helm test.
var checkObjects = []schema.GroupVersionResource{
	{Version: "v1", Resource: "pods"}, {Version: "v1", Resource: "serviceaccounts"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
}

// TestNothingLeft checks that helm test deletes all that it creates, also if the test
// fails: hooks are no part of the release, so uninstalling would leave them.
func TestNothingLeft(t *testing.T) {
	_, client, akri := releaseOn(t)
	adopt(t, client, akri)
	if _, err := akri.Install(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	akri.Timeout = time.Minute
	for _, phase := range []string{"Succeeded", "Failed"} {
		t.Run(phase, func(t *testing.T) {
			endPod(t, client, phase)
			if err := akri.Test(t.Context(), io.Discard); (err == nil) != (phase == "Succeeded") {
				t.Errorf("the test ends with %v", err)
			}
			for _, kind := range checkObjects {
				list, err := client.Resource(kind).Namespace(akri.Namespace).List(t.Context(), metav1.ListOptions{})
				if err != nil {
					t.Fatal(err)
				}
				for _, o := range list.Items {
					if o.GetName() == "akri-check" && o.GetDeletionTimestamp() == nil {
						t.Errorf("%s %s is left", o.GetKind(), o.GetName())
					}
				}
			}
		})
	}
}

// endPod ends the Pod of the test, as a kubelet does, in a phase.
func endPod(t *testing.T, client dynamic.Interface, phase string) {
	t.Helper()
	pods := client.Resource(checkObjects[0]).Namespace(release().Namespace)
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	t.Cleanup(func() { cancel(); <-stopped })
	watch, err := pods.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=akri-check"})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(stopped)
		for event := range watch.ResultChan() {
			pod, ok := event.Object.(*unstructured.Unstructured)
			if !ok {
				return // the watch has ended
			}
			if status, _, _ := unstructured.NestedString(pod.Object, "status", "phase"); status == phase {
				continue
			}
			pod.Object["status"] = map[string]any{"phase": phase}
			_, _ = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{}) // again, if it was changed
		}
	}()
}
