package webhook

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v0 "akri.sh/akri/api/v0"
)

// verbDelegate on a Configuration lets a user create a Configuration whose objects
// they could not create directly.
const verbDelegate = "delegate"

// demand is a permission that a template requires.
type demand struct {
	right
	place string
	// unknownKind is set if the API server does not serve the kind, so that the
	// name of the resource is guessed.
	unknownKind string
}

// mayDelegate reports whether the requester has the verb delegate.
func (c *cluster) mayDelegate(ctx context.Context, r request) (bool, []Finding) {
	allowed, err := c.may(ctx, r.user, right{
		verb: verbDelegate, group: v0.Domain, resource: v0.ConfigurationResource.Resource,
		namespace: r.configuration.Namespace, name: r.configuration.Name,
	})
	if err != nil {
		return false, []Finding{unanswered(err)}
	}
	return allowed, nil
}

// authorize denies requests that would use a Configuration to bypass the
// requester's own RBAC. It checks templates, not the objects rendered for a device,
// so a condition that no made-up device meets hides nothing.
func (c *cluster) authorize(ctx context.Context, r request, candidates []*candidate, delegated bool) []Finding {
	if account := r.configuration.Spec.ServiceAccountName; account != "" {
		// Objects are created with the permissions of the account. A user who may
		// impersonate the account could create them directly.
		return c.unmet(ctx, r.user, []demand{{
			right: right{verb: "impersonate", resource: "serviceaccounts", namespace: r.configuration.Namespace, name: account},
			place: "spec.serviceAccountName",
		}})
	}
	if delegated {
		return nil
	}
	return c.unmet(ctx, r.user, demandsOf(c.mapper, candidates))
}

// demandsOf returns the permissions that the templates require.
func demandsOf(mapper meta.RESTMapper, candidates []*candidate) []demand {
	var demands []demand
	seen := map[right]bool{}
	for _, tmpl := range candidates {
		resource, guessed := resourceOf(mapper, tmpl)
		verbs := []string{"create", "patch", "delete"}
		var binding []demand
		if tmpl.kind.Group == "rbac.authorization.k8s.io" {
			if strings.HasSuffix(tmpl.kind.Kind, "Binding") {
				binding = bindDemands(tmpl)
			} else {
				verbs = append(verbs, "escalate")
			}
		}
		for _, verb := range verbs {
			d := demand{
				right: right{
					verb: verb, group: resource.Group, resource: resource.Resource,
					namespace: tmpl.namespace, name: tmpl.name,
				},
				place: tmpl.place,
			}
			if guessed {
				d.unknownKind = tmpl.kind.Kind
			}
			if !seen[d.right] {
				seen[d.right] = true
				demands = append(demands, d)
			}
		}
		demands = append(demands, binding...)
	}
	return demands
}

// bindDemands returns the permission to bind the role that a binding references.
// Bindings and roles are rendered only if the controller's operator allows it.
func bindDemands(tmpl *candidate) []demand {
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
	return []demand{{
		right: right{verb: "bind", group: tmpl.kind.Group, resource: resource, namespace: namespace, name: name},
		place: tmpl.place,
	}}
}

// resourceOf returns the resource of a template's kind for access reviews. If the
// API server does not serve the kind, the name of the resource is guessed by the
// usual rule. If another kind has that name, only a permission for the whole group
// suffices.
func resourceOf(mapper meta.RESTMapper, tmpl *candidate) (resource schema.GroupResource, guessed bool) {
	if tmpl.resource != nil {
		return tmpl.resource.Resource.GroupResource(), false
	}
	plural, _ := meta.UnsafeGuessKindToResource(tmpl.kind)
	if kinds, err := mapper.KindsFor(plural.GroupResource().WithVersion("")); err == nil && len(kinds) > 0 {
		plural.Resource = "*"
	}
	return plural.GroupResource(), true
}

// unmet returns a finding for each demand that the requester does not meet.
func (c *cluster) unmet(ctx context.Context, user authenticationv1.UserInfo, demands []demand) []Finding {
	var mu sync.Mutex
	lacking := map[int]bool{}
	var failure error
	reviews := newParallel()
	for i, d := range demands {
		reviews.run(func() {
			allowed, err := c.may(ctx, user, d.right)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failure = err
			} else if !allowed {
				lacking[i] = true
			}
		})
	}
	reviews.wait()
	if failure != nil {
		return []Finding{unanswered(failure)}
	}
	return forbidden(user.Username, demands, lacking)
}

// unanswered denies a request because an access review failed: no permission is
// assumed.
func unanswered(err error) Finding {
	return Finding{Level: Forbid, Place: "spec", Cause: fmt.Sprintf("could not check your permissions: %v", err), Remedy: "try again"}
}

// forbidden returns a finding for each place and resource, with the verbs that are
// missing.
func forbidden(user string, demands []demand, lacking map[int]bool) []Finding {
	var findings []Finding
	var verbs []string
	for i, d := range demands {
		if lacking[i] {
			verbs = append(verbs, d.verb)
		}
		last := i == len(demands)-1 || demands[i+1].place != d.place || demands[i+1].resource != d.resource
		if !last || len(verbs) == 0 {
			continue
		}
		missing := d.right
		slices.Sort(verbs)
		missing.verb = strings.Join(slices.Compact(verbs), ", ")
		finding := Finding{Level: Forbid, Place: d.place}
		finding.Cause = fmt.Sprintf("user %q may not %s, and a Configuration does not grant permissions", user, missing)
		finding.Remedy = fmt.Sprintf("request these permissions, or the verb %s on the Configuration", verbDelegate)
		switch {
		case d.verb == "impersonate":
			finding.Cause = fmt.Sprintf("user %q may not %s, whose permissions would create the objects", user, missing)
			finding.Remedy = "request that permission, or remove the field"
		case d.unknownKind != "":
			finding.Cause += fmt.Sprintf(" (the API server does not serve kind %s yet; its resource is usually called %s)", d.unknownKind,
				d.resource)
		}
		findings = append(findings, finding)
		verbs = nil
	}
	return findings
}
