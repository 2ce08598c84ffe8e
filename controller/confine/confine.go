package confine

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v0 "akri.sh/akri/api/v0"
)

// RefusedError says that an object may not be made from a template.
type RefusedError struct {
	// Cause is what is refused and why; Hint is what to do instead.
	Cause, Hint string
}

func (e *RefusedError) Error() string { return e.Cause + ": " + e.Hint }

// refusedGroups are API groups none of whose kinds is rendered.
var refusedGroups = map[string]string{
	v0.Domain:                      "Akri's own kinds are not rendered",
	"apiextensions.k8s.io":         "CustomResourceDefinitions change what the whole cluster accepts",
	"admissionregistration.k8s.io": "admission webhooks and policies rule over the whole cluster",
	"apiregistration.k8s.io":       "APIServices change what the whole cluster serves",
	"rbac.authorization.k8s.io":    "a template must not hand out rights",
	"certificates.k8s.io":          "a template must not ask for credentials",
	"authentication.k8s.io":        "a template must not ask for credentials",
	"authorization.k8s.io":         "it is a question, not an object that can exist",
}

// credentialSecrets are Secret types that the control plane fills with
// credentials or takes as such.
var credentialSecrets = map[string]bool{
	"kubernetes.io/service-account-token": true,
	"bootstrap.kubernetes.io/token":       true,
}

// Policy is what the operator of the controller allows beyond what is safe. The
// zero value allows nothing.
type Policy struct {
	// ClusterScoped allows kinds that have no namespace.
	ClusterScoped bool
	// OtherNamespaces allows objects outside the Configuration's namespace.
	OtherNamespaces bool
	// Kinds are allowed though they give power over Akri or the cluster.
	Kinds []schema.GroupKind
}

// Kind answers for a kind, before anything is rendered.
func (p Policy) Kind(kind schema.GroupVersionKind) error {
	if why, refused := refusedGroups[kind.Group]; refused && !slices.Contains(p.Kinds, kind.GroupKind()) {
		return &RefusedError{
			Cause: fmt.Sprintf("kind %s of %s is refused, since %s", kind.Kind, kind.GroupVersion(), why),
			Hint:  fmt.Sprintf("remove the template and create the object yourself, or let the controller's operator set --allow-kinds=%s", kind.GroupKind()),
		}
	}
	return nil
}

// Object answers for a rendered object of a kind that is allowed. namespaced is
// the kind's scope, home the Configuration's namespace.
func (p Policy) Object(content map[string]any, namespaced bool, home string) error {
	kind, _ := content["kind"].(string)
	apiVersion, _ := content["apiVersion"].(string)
	metadata, _ := content["metadata"].(map[string]any)
	namespace, _ := metadata["namespace"].(string)
	switch {
	case !namespaced && !p.ClusterScoped:
		return &RefusedError{
			Cause: fmt.Sprintf("kind %s of %s is cluster-scoped, and a Configuration makes objects in its own namespace only", kind, apiVersion),
			Hint:  "remove the template and create the object yourself, or let the controller's operator set --allow-cluster-scoped",
		}
	case !namespaced && namespace != "":
		return &RefusedError{
			Cause: fmt.Sprintf("metadata.namespace is %q, and kind %s of %s has no namespace", namespace, kind, apiVersion),
			Hint:  "remove metadata.namespace",
		}
	case namespaced && namespace != "" && namespace != home && !p.OtherNamespaces:
		return &RefusedError{
			Cause: fmt.Sprintf("metadata.namespace is %q, and a Configuration makes objects in its own namespace %q only", namespace, home),
			Hint:  fmt.Sprintf("remove metadata.namespace, put a Configuration into %q, or let the controller's operator set --allow-other-namespaces", namespace),
		}
	}
	if secretType, _ := content["type"].(string); apiVersion == "v1" && kind == "Secret" && credentialSecrets[secretType] {
		return &RefusedError{
			Cause: fmt.Sprintf("a Secret of type %s is refused, since it holds credentials of the cluster", secretType),
			Hint:  "use another type, such as Opaque",
		}
	}
	return nil
}
