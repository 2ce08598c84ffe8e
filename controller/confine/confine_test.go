package confine

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestKind(t *testing.T) {
	refused := []schema.GroupVersionKind{
		{Group: "akri.sh", Version: "v0", Kind: "Configuration"},
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	}
	for _, kind := range refused {
		if err := Kind(kind); err == nil || !strings.Contains(err.Error(), kind.Kind) {
			t.Errorf("%s: got %v, want a refusal that names it", kind, err)
		}
	}
	if err := Kind(schema.GroupVersionKind{Group: "shifu.edgenesis.io", Version: "v1alpha1", Kind: "EdgeDevice"}); err != nil {
		t.Errorf("a custom kind: %v", err)
	}
}

func TestObject(t *testing.T) {
	object := func(namespace string, more map[string]any) map[string]any {
		content := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "n", "namespace": namespace}}
		for key, value := range more {
			content[key] = value
		}
		return content
	}
	cases := map[string]struct {
		content    map[string]any
		namespaced bool
		refusedFor string
	}{
		"home by default":  {object("", nil), true, ""},
		"home by name":     {object("home", nil), true, ""},
		"elsewhere":        {object("kube-system", nil), true, `"kube-system"`},
		"cluster-scoped":   {object("", nil), false, "cluster-scoped"},
		"plain Secret":     {object("", map[string]any{"type": "Opaque"}), true, ""},
		"token Secret":     {object("", map[string]any{"type": "kubernetes.io/service-account-token"}), true, "service-account-token"},
		"bootstrap Secret": {object("", map[string]any{"type": "bootstrap.kubernetes.io/token"}), true, "bootstrap"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := Object(tc.content, tc.namespaced, "home")
			if tc.refusedFor == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if _, refused := errors.AsType[*RefusedError](err); !refused || !strings.Contains(err.Error(), tc.refusedFor) {
				t.Errorf("got %v, want a refusal about %s", err, tc.refusedFor)
			}
		})
	}
}
