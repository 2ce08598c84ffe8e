package helm_test

import (
	"context"
	"io"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
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
			denied := endPod(t, client, phase)
			if err := akri.Test(t.Context(), io.Discard); (err == nil) != (phase == "Succeeded") {
				t.Errorf("the test ends with %v", err)
			}
			if missing := denied(); len(missing) > 0 {
				t.Errorf("the Pod of the test may not %q", missing)
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

// checkRights are what the Pod of the test needs: verb, group, resource and name. It may
// use the handler if the webhook runs with --authorize-discovery-handlers, too.
var checkRights = [][4]string{
	{"create", "akri.sh", "configurations", ""}, {"delete", "akri.sh", "configurations", "akri-check"},
	{"use", "akri.sh", "discoveryhandlers", "debugEcho"},
	{"list", "akri.sh", "instances", ""}, {"get", "apps", "daemonsets", "akri-agent"},
}

// endPod ends the Pod of the test, as a kubelet does, in a phase. denied returns the rights
// that the Pod lacked, after the test.
func endPod(t *testing.T, client dynamic.Interface, phase string) (denied func() [][4]string) {
	t.Helper()
	pods := client.Resource(checkObjects[0]).Namespace(release().Namespace)
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	t.Cleanup(func() { cancel(); <-stopped })
	watch, err := pods.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=akri-check"})
	if err != nil {
		t.Fatal(err)
	}
	missing := checkRights
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
			// The API server may learn of the Role a moment after the Pod.
			_ = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 10*time.Second, true, func(ctx context.Context) (bool, error) {
				missing = deniedOf(ctx, client, missing)
				return len(missing) == 0, nil
			})
			pod.Object["status"] = map[string]any{"phase": phase}
			_, _ = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{}) // again, if it was changed
		}
	}()
	return func() [][4]string { cancel(); <-stopped; return missing }
}

// deniedOf returns those of some rights that the Pod of the test does not have.
func deniedOf(ctx context.Context, client dynamic.Interface, rights [][4]string) [][4]string {
	reviews := client.Resource(schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "subjectaccessreviews"})
	return slices.DeleteFunc(slices.Clone(rights), func(r [4]string) bool {
		review, err := reviews.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
			"spec": map[string]any{
				"user": "system:serviceaccount:" + release().Namespace + ":akri-check",
				"resourceAttributes": map[string]any{
					"namespace": release().Namespace, "verb": r[0], "group": r[1], "resource": r[2], "name": r[3],
				},
			},
		}}, metav1.CreateOptions{})
		if err != nil {
			return false
		}
		allowed, _, _ := unstructured.NestedBool(review.Object, "status", "allowed")
		return allowed
	})
}
