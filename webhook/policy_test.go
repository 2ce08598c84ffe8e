package webhook

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// manifest returns the objects in a file of config/.
func (w *world) manifest(file string) []*unstructured.Unstructured {
	w.Helper()
	text, err := os.ReadFile(filepath.Join("..", "config", file))
	if err != nil {
		w.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		objects = append(objects, decode(w, document))
	}
	return objects
}

// enforce installs a manifest of config/policy and waits until the API server denies
// the probe because of it: other tests install the same policies. changes are made to
// the policies before.
func (w *world) enforce(file string, probe func() error, changes ...func(policy *unstructured.Unstructured)) {
	w.Helper()
	mark := " (" + w.Namespace + ")"
	w.install(file, func(object *unstructured.Unstructured) {
		if object.GetKind() != "ValidatingAdmissionPolicy" {
			return
		}
		for _, change := range changes {
			change(object)
		}
		for _, validation := range object.Object["spec"].(map[string]any)["validations"].([]any) {
			validation := validation.(map[string]any)
			if message, ok := validation["messageExpression"].(string); ok {
				validation["messageExpression"] = message + " + '" + mark + "'"
			} else {
				validation["message"] = validation["message"].(string) + mark
			}
		}
	})
	w.Eventually("the policy is enforced", func() string {
		if err := probe(); err == nil || !strings.Contains(err.Error(), mark) {
			return fmt.Sprintf("the probe is not denied: %v", err)
		}
		return ""
	})
}

// install applies a manifest of config/, and deletes it after the test.
func (w *world) install(file string, change func(*unstructured.Unstructured)) {
	w.Helper()
	api, err := dynamic.NewForConfig(w.Config)
	if err != nil {
		w.Fatal(err)
	}
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "akri-system"}}
	if _, err := w.kubernetes().CoreV1().Namespaces().Create(w.Context(), system, metav1.CreateOptions{}); err != nil &&
		!apierrors.IsAlreadyExists(err) {
		w.Fatal(err)
	}
	for _, object := range w.manifest(file) {
		if change != nil {
			change(object)
		}
		mapping, err := w.options.Mapper.RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
		if err != nil {
			w.Fatal(err)
		}
		resource := api.Resource(mapping.Resource).Namespace(object.GetNamespace())
		if _, err := resource.Apply(w.Context(), object.GetName(), object, metav1.ApplyOptions{FieldManager: "test", Force: true}); err != nil {
			w.Fatalf("%s: %v", file, err)
		}
		w.Cleanup(func() {
			if err := resource.Delete(background, object.GetName(), metav1.DeleteOptions{}); err != nil {
				w.Error(err)
			}
		})
	}
}

// expect fails the test unless err contains words or, without words, is nil.
func expect(t testing.TB, err error, words string) {
	t.Helper()
	switch {
	case words == "" && err != nil:
		t.Errorf("denied: %v", err)
	case words != "" && err == nil:
		t.Errorf("allowed, want a denial with %q", words)
	case words != "" && !strings.Contains(err.Error(), words):
		t.Errorf("denied with %v, want %q in it", err, words)
	}
}
