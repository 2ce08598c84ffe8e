package webhook

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/templating"
)

const (
	// verbImpersonate on a ServiceAccount lets a user act as it.
	verbImpersonate = "impersonate"
	// verbDelegate on Configurations of a namespace stands for the permissions that
	// the author lacks in that namespace.
	verbDelegate = "delegate"
	// verbUse on a discovery handler lets a user write Configurations for it.
	verbUse = "use"
	// handlerResource is a resource that exists in RBAC rules only.
	handlerResource = "discoveryhandlers"
)

// requirement is a permission that a Configuration requires.
type requirement struct {
	right
	place string
	// ofAccount is set if the ServiceAccount in the Configuration must have it, not
	// the requester.
	ofAccount bool
	// unknownKind is set if the API server does not serve the kind, so that the
	// name of the resource is guessed.
	unknownKind string
	// pruned is the place of a template that the request removes.
	pruned string
}

// objectRequirements returns the permissions to manage the objects of the templates.
func (c *cluster) objectRequirements(candidates []*candidate) []requirement {
	var requirements []requirement
	for _, tmpl := range candidates {
		verbs := []string{"create", "patch", "delete"}
		var binding []requirement
		if tmpl.kind.Group == "rbac.authorization.k8s.io" {
			if strings.HasSuffix(tmpl.kind.Kind, "Binding") {
				binding = bindRequirements(tmpl)
			} else {
				verbs = append(verbs, "escalate")
			}
		}
		for _, verb := range verbs {
			requirements = append(requirements, c.kindRequirement(tmpl, verb, tmpl.place))
		}
		requirements = append(requirements, binding...)
	}
	return requirements
}

// readRequirements returns the permissions to read what the templates reveal of objects
// that others write to: whether a condition holds, and whether an object of another
// owner exists.
func (c *cluster) readRequirements(candidates []*candidate) []requirement {
	var requirements []requirement
	for _, tmpl := range candidates {
		for _, directive := range []struct {
			name string
			used bool
		}{
			{"ready-when", tmpl.directives.ReadyWhen != nil},
			{"on-conflict", tmpl.directives.OnConflict != templating.ConflictFail},
		} {
			if directive.used {
				place := tmpl.field("metadata.annotations[" + v0.Domain + "/" + directive.name + "]")
				requirements = append(requirements, c.kindRequirement(tmpl, "get", place))
			}
		}
	}
	return requirements
}

// kindRequirement returns the permission for a verb on the objects of a template.
func (c *cluster) kindRequirement(tmpl *candidate, verb, place string) requirement {
	need := requirement{right: right{verb: verb, namespace: tmpl.namespace, name: tmpl.name}, place: place}
	resource := c.resourceOf(tmpl)
	need.group, need.resource = resource.Group, resource.Resource
	if tmpl.resource == nil {
		need.unknownKind = tmpl.kind.Kind
		if c.policy.ClusterScoped {
			need.namespace = "" // the kind may turn out to be cluster-scoped
		}
	}
	return need
}

// bindRequirements returns the permission to bind the role that a binding references.
// Bindings and roles are rendered only if the controller's operator allows it.
func bindRequirements(tmpl *candidate) []requirement {
	reference, _ := tmpl.source["roleRef"].(map[string]any)
	kind, _ := reference["kind"].(string)
	name, _ := reference["name"].(string)
	resource := "clusterroles"
	namespace := ""
	if kind == "Role" {
		resource, namespace = "roles", tmpl.namespace
	}
	if hasExpression(reference) {
		resource, namespace, name = "*", "", ""
	}
	return []requirement{{
		right: right{verb: "bind", group: tmpl.kind.Group, resource: resource, namespace: namespace, name: name},
		place: tmpl.place,
	}}
}

// resourceOf returns the resource of a template's kind for access reviews. If the
// API server does not serve the kind, the name of the resource is guessed by the
// usual rule. If that name may be wrong, only a permission for the whole group
// suffices: another kind has it, or the API server's kinds are not known.
func (c *cluster) resourceOf(tmpl *candidate) schema.GroupResource {
	if tmpl.resource != nil {
		return tmpl.resource.Resource.GroupResource()
	}
	plural, _ := meta.UnsafeGuessKindToResource(tmpl.kind)
	kinds, err := c.mapper.KindsFor(plural.GroupResource().WithVersion(""))
	if len(kinds) > 0 || tmpl.err != nil || err != nil && !meta.IsNoMatchError(err) {
		plural.Resource = "*"
	}
	return plural.GroupResource()
}

// discoveryRequirements returns the permissions to use what the discovery handler is
// given: the Secrets and ConfigMaps whose values agents pass to it, and, if required,
// the handler itself, which chooses devices, files and mounts of the nodes.
func discoveryRequirements(configuration *v0.Configuration, requireUse bool) []requirement {
	var requirements []requirement
	if handler := configuration.Spec.DiscoveryHandler.Name; requireUse {
		requirements = append(requirements, requirement{
			right: right{verb: verbUse, group: v0.Domain, resource: handlerResource, namespace: configuration.Namespace, name: handler},
			place: "spec.discoveryHandler.name",
		})
	}
	for _, one := range references(configuration) {
		requirements = append(requirements, requirement{
			right: right{verb: "get", resource: one.resource, namespace: one.namespace, name: one.name}, place: one.place,
		})
	}
	return requirements
}
