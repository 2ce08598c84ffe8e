package confine

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/internal/finding"
	"akri.sh/akri/templating"
)

// refusedGroups are API groups whose kinds are never rendered.
var refusedGroups = map[string]string{
	v0.Domain:                      "Akri's own kinds are not rendered",
	"apiextensions.k8s.io":         "CustomResourceDefinitions change what the whole cluster accepts",
	"admissionregistration.k8s.io": "admission webhooks and policies control the whole cluster",
	"apiregistration.k8s.io":       "APIServices change what the whole cluster serves",
	"rbac.authorization.k8s.io":    "a template must not grant permissions",
	"certificates.k8s.io":          "a template must not request credentials",
	"authentication.k8s.io":        "a template must not request credentials",
	"authorization.k8s.io":         "an access review is a query, not an object that is stored",
}

// credentialSecrets are Secret types that the control plane fills with
// credentials or takes as such.
var credentialSecrets = map[string]bool{
	"kubernetes.io/service-account-token": true,
	"bootstrap.kubernetes.io/token":       true,
}

// Policy holds the restrictions that the controller's operator has lifted. The zero
// value lifts none.
type Policy struct {
	// ClusterScoped allows kinds that have no namespace.
	ClusterScoped bool
	// OtherNamespaces allows objects outside the Configuration's namespace.
	OtherNamespaces bool
	// Kinds are allowed although they give power over Akri or the cluster.
	Kinds []schema.GroupKind
}

// createYourself is the remedy for what only the operator can allow.
const createYourself = "remove the template and create the object yourself, or let the controller's operator set "

// Kind returns an error if objects of a kind may not be rendered.
func (p Policy) Kind(kind schema.GroupVersionKind) error {
	if why, refused := refusedGroups[kind.Group]; refused && !slices.Contains(p.Kinds, kind.GroupKind()) {
		return refusal(
			fmt.Sprintf("kind %s of %s is refused because %s", kind.Kind, kind.GroupVersion(), why),
			createYourself+fmt.Sprintf("--allow-kinds=%s", kind.GroupKind()),
		)
	}
	return nil
}

// Object returns an error if an object of an allowed kind may not be applied for
// a Configuration in the namespace home. namespaced is the scope of the kind; the object
// need not name a namespace.
func (p Policy) Object(
	kind schema.GroupVersionKind, namespaced bool, content map[string]any, conflict templating.OnConflict, home string,
) error {
	metadata, _ := content["metadata"].(map[string]any)
	namespace, _ := metadata["namespace"].(string)
	secretType, _ := content["type"].(string)
	isSecret := kind.Group == "" && kind.Kind == "Secret"
	switch {
	case !namespaced && !p.ClusterScoped:
		return refusal(
			fmt.Sprintf("kind %s of %s is cluster-scoped, but a Configuration creates objects only in its own namespace",
				kind.Kind, kind.GroupVersion()),
			createYourself+"--allow-cluster-scoped",
		)
	case !namespaced && namespace != "":
		return refusal(
			fmt.Sprintf("metadata.namespace is %q, but kind %s of %s is cluster-scoped", namespace, kind.Kind, kind.GroupVersion()),
			"remove metadata.namespace",
		)
	case namespaced && namespace != "" && namespace != home && !p.OtherNamespaces:
		return refusal(
			fmt.Sprintf("metadata.namespace is %q, but a Configuration creates objects only in its own namespace %q", namespace, home),
			fmt.Sprintf("remove metadata.namespace, create the Configuration in %q, or let the controller's operator set "+
				"--allow-other-namespaces", namespace),
		)
	case isSecret && conflict == templating.ConflictAdopt && secretType == "":
		// The type of a Secret is immutable, so one of another type is not taken.
		return refusal(
			"the template takes over a Secret of any type, and some types hold credentials of the cluster",
			"set type, as in type: Opaque, or remove akri.sh/on-conflict",
		)
	case isSecret && credentialSecrets[secretType]:
		return refusal(
			fmt.Sprintf("a Secret of type %s is refused because it holds credentials of the cluster", secretType),
			"use another type, such as Opaque",
		)
	}
	return nil
}

// refusal returns the error for an object that only a person can change.
func refusal(cause, hint string) error {
	return &problem.Error{Mistake: finding.Mistake{Cause: cause, Hint: hint}, Reason: v0.ReasonRefused}
}
