package apply

import (
	"errors"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/templating"
)

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
