package apply

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/templating"
)

// Without an error, the parent has the status or no longer exists. A version counts only if it is the parent's.
func TestPatchStatus(t *testing.T) {
	w := newWorld(t)
	configurations := w.dynamic.Resource(v0.ConfigurationResource).Namespace(w.namespace)
	created, err := configurations.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "akri.sh/v0", "kind": "Configuration", "metadata": map[string]any{"name": "cfg"},
		"spec": map[string]any{"discoveryHandler": map[string]any{"name": "debugEcho"}},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	parent := ownership.Parent{Level: templating.ConfigurationLevel, UID: created.GetUID(),
		NamespacedName: types.NamespacedName{Namespace: w.namespace, Name: "cfg"}}
	absent, replaced := parent, parent
	absent.Name, replaced.UID = "absent", "22222222-2222-2222-2222-222222222222"
	status := map[string]any{"instances": 3}
	for reason, former := range map[string]ownership.Parent{"absent": absent, "replaced": replaced} {
		if version, err := w.PatchStatus(t.Context(), former, status); version != "" || err != nil {
			t.Errorf("%s: %q, %v", reason, version, err)
		}
	}
	config := rest.CopyConfig(w.config)
	config.Wrap(func(http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			answer := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409,"message":"a webhook says no"}`
			return &http.Response{StatusCode: http.StatusConflict, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(strings.NewReader(answer)), Request: request}, nil
		})
	})
	refused, err := NewClient(config, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := refused.PatchStatus(t.Context(), parent, status); !apierrors.IsConflict(err) {
		t.Errorf("refused: %v", err)
	}
	version, err := w.PatchStatus(t.Context(), parent, status)
	now, readErr := configurations.Get(t.Context(), "cfg", metav1.GetOptions{})
	if err := errors.Join(err, readErr); err != nil || version != now.GetResourceVersion() {
		t.Errorf("written: %q, %v", version, err)
	}
	if written, _, _ := unstructured.NestedInt64(now.Object, "status", "instances"); written != 3 {
		t.Errorf("the status is %v", now.Object["status"])
	}
}

// A parent that no longer exists gets no finalizer, and the caller learns of it: it
// must create nothing that only the finalizer would delete.
func TestFinalizeParentThatIsGone(t *testing.T) {
	w := newWorld(t)
	configurations := w.dynamic.Resource(v0.ConfigurationResource).Namespace(w.namespace)
	created, err := configurations.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "akri.sh/v0", "kind": "Configuration",
		"metadata": map[string]any{"name": "cfg", "finalizers": []any{"test/wait"}},
		"spec":     map[string]any{"discoveryHandler": map[string]any{"name": "debugEcho"}},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	parent := ownership.Parent{
		Level: templating.ConfigurationLevel, UID: created.GetUID(),
		NamespacedName: types.NamespacedName{Namespace: w.namespace, Name: "cfg"},
	}
	account := types.NamespacedName{Namespace: w.namespace, Name: "cameras"}
	if err := w.Finalize(t.Context(), parent, account); err != nil {
		t.Fatal(err)
	}
	now, err := configurations.Get(t.Context(), "cfg", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if name := now.GetAnnotations()[v0.AnnotationServiceAccount]; name != "cameras" || len(now.GetFinalizers()) != 2 {
		t.Errorf("account %q, finalizers %v", name, now.GetFinalizers())
	}
	if err := w.Unfinalize(t.Context(), parent); err != nil {
		t.Fatal(err)
	}
	if err := configurations.Delete(t.Context(), "cfg", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	absent, replaced := parent, parent
	absent.Name, replaced.UID = "absent", "22222222-2222-2222-2222-222222222222"
	for reason, parent := range map[string]ownership.Parent{
		"being deleted": parent, "absent": absent, "replaced": replaced,
	} {
		if err := w.Finalize(t.Context(), parent, account); !errors.Is(err, ErrGone) {
			t.Errorf("%s: got %v, want ErrGone", reason, err)
		}
		if err := w.Unfinalize(t.Context(), parent); err != nil {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

// The finalizer with which garbage collection orphans the objects of a parent, or deletes
// them first, has no field manager, and stays.
func TestUnfinalizeLeavesOtherFinalizers(t *testing.T) {
	w := newWorld(t)
	configurations := w.dynamic.Resource(v0.ConfigurationResource).Namespace(w.namespace)
	for policy, finalizer := range map[metav1.DeletionPropagation]string{
		metav1.DeletePropagationOrphan:     metav1.FinalizerOrphanDependents,
		metav1.DeletePropagationForeground: metav1.FinalizerDeleteDependents,
	} {
		name := strings.ToLower(string(policy))
		created, err := configurations.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "akri.sh/v0", "kind": "Configuration", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"discoveryHandler": map[string]any{"name": "debugEcho"}},
		}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		parent := ownership.Parent{
			Level: templating.ConfigurationLevel, UID: created.GetUID(), NamespacedName: types.NamespacedName{Namespace: w.namespace, Name: name},
		}
		if err := w.Finalize(t.Context(), parent, types.NamespacedName{Namespace: w.namespace, Name: "cameras"}); err != nil {
			t.Fatal(err)
		}
		if err := configurations.Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
			t.Fatal(err)
		}
		if err := w.Unfinalize(t.Context(), parent); err != nil {
			t.Fatal(err)
		}
		now, err := configurations.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatalf("deleted with %s: %v", policy, err)
		}
		if !slices.Equal(now.GetFinalizers(), []string{finalizer}) || len(now.GetAnnotations()) != 0 {
			t.Errorf("deleted with %s: finalizers %v, annotations %v", policy, now.GetFinalizers(), now.GetAnnotations())
		}
	}
}
