package confine

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/templating"
)

func TestKind(t *testing.T) {
	refused := []schema.GroupVersionKind{
		{Group: "akri.sh", Version: "v0", Kind: "Configuration"},
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
		{Group: "certificates.k8s.io", Version: "v1", Kind: "CertificateSigningRequest"},
	}
	for _, kind := range refused {
		if err := (Policy{}).Kind(kind); err == nil || !strings.Contains(err.Error(), kind.Kind) {
			t.Errorf("%s: got %v, want a refusal that names it", kind, err)
		}
	}
	if err := (Policy{}).Kind(schema.GroupVersionKind{Group: "shifu.edgenesis.io", Version: "v1alpha1", Kind: "EdgeDevice"}); err != nil {
		t.Errorf("a custom kind: %v", err)
	}
}

func TestObject(t *testing.T) {
	secret := schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	object := func(namespace string, more map[string]any) map[string]any {
		content := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "n", "namespace": namespace}}
		maps.Copy(content, more)
		return content
	}
	cases := map[string]struct {
		content    map[string]any
		namespaced bool
		conflict   templating.OnConflict
		refusedFor string
	}{
		"home by default":  {object("", nil), true, "", ""},
		"home by name":     {object("home", nil), true, "", ""},
		"elsewhere":        {object("kube-system", nil), true, "", `"kube-system"`},
		"cluster-scoped":   {object("", nil), false, "", "cluster-scoped"},
		"plain Secret":     {object("", map[string]any{"type": "Opaque"}), true, "", ""},
		"token Secret":     {object("", map[string]any{"type": "kubernetes.io/service-account-token"}), true, "", "service-account-token"},
		"bootstrap Secret": {object("", map[string]any{"type": "bootstrap.kubernetes.io/token"}), true, "", "bootstrap"},
		// A token Secret that exists would be taken over, and what it says be read.
		"taken Secret of any type": {object("", nil), true, templating.ConflictAdopt, "type: Opaque"},
		"taken Secret of a type":   {object("", map[string]any{"type": "Opaque"}), true, templating.ConflictAdopt, ""},
		"skipped Secret":           {object("", nil), true, templating.ConflictSkip, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := (Policy{}).Object(secret, tc.namespaced, tc.content, tc.conflict, "home")
			if tc.refusedFor == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if found, refused := errors.AsType[*problem.Error](
				err,
			); !refused || found.Reason != v0.ReasonRefused || found.Retryable ||
				!strings.Contains(err.Error(), tc.refusedFor) {
				t.Errorf("got %v, want a refusal about %s", err, tc.refusedFor)
			}
		})
	}
}

func TestWhatAnOperatorAllows(t *testing.T) {
	role := schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}
	allowed := Policy{ClusterScoped: true, OtherNamespaces: true, Kinds: []schema.GroupKind{role.GroupKind()}}
	if err := allowed.Kind(role); err != nil {
		t.Errorf("Role: %v", err)
	}
	if err := allowed.Kind(schema.GroupVersionKind{Group: role.Group, Version: "v1", Kind: "RoleBinding"}); err == nil {
		t.Error("RoleBinding is allowed, but only Role should be")
	}
	for name, tc := range map[string]struct {
		kind, namespace string
		namespaced      bool
		refusedFor      string
	}{
		"cluster-scoped":                         {"K", "", false, ""},
		"elsewhere":                              {"K", "far", true, ""},
		"a namespace for a cluster-scoped kind":  {"K", "far", false, "is cluster-scoped"},
		"a token Secret, whatever else they may": {"Secret", "", true, "credentials"},
	} {
		content := map[string]any{
			"metadata": map[string]any{"name": "n", "namespace": tc.namespace}, "type": "kubernetes.io/service-account-token",
		}
		err := allowed.Object(schema.GroupVersionKind{Version: "v1", Kind: tc.kind}, tc.namespaced, content, "", "home")
		if (err != nil) != (tc.refusedFor != "") || err != nil && !strings.Contains(err.Error(), tc.refusedFor) {
			t.Errorf("%s: got %v, want a refusal about %q", name, err, tc.refusedFor)
		}
	}
}
