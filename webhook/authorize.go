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

// demand is a right that a template requires.
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
// requester's own RBAC. It checks templates, not the objects rendered for a device:
// a condition that no made-up device fulfils hides nothing.
func (c *cluster) authorize(ctx context.Context, r request, candidates []*candidate, delegated bool) []Finding {
	if account := r.configuration.Spec.ServiceAccountName; account != "" {
		// Objects are created with the rights of the account. A user who may
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

// demandsOf returns the rights that the templates require.
func demandsOf(mapper meta.RESTMapper, candidates []*candidate) []demand {
	var demands []demand
	seen := map[right]bool{}
	for _, candidate := range candidates {
		resource, guessed := resourceOf(mapper, candidate)
		verbs := []string{"create", "patch", "delete"}
		var binding []demand
		if candidate.kind.Group == "rbac.authorization.k8s.io" {
			if strings.HasSuffix(candidate.kind.Kind, "Binding") {
				binding = bindDemands(candidate)
			} else {
				verbs = append(verbs, "escalate")
			}
		}
		for _, verb := range verbs {
			d := demand{
				right: right{
					verb: verb, group: resource.Group, resource: resource.Resource,
					namespace: candidate.namespace, name: candidate.name,
				},
				place: candidate.place,
			}
			if guessed {
				d.unknownKind = candidate.kind.Kind
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

// bindDemands returns the right to bind the role that a binding names. Bindings and
// roles are rendered only if the controller's operator allows it.
func bindDemands(candidate *candidate) []demand {
	reference, _ := candidate.template["roleRef"].(map[string]any)
	kind, _ := reference["kind"].(string)
	name, _ := reference["name"].(string)
	resource := "clusterroles"
	namespace := ""
	if kind == "Role" {
		resource, namespace = "roles", candidate.namespace
	}
	if hasExpression(reference) {
		resource, namespace, name = "*", "", ""
	}
	return []demand{{
		right: right{verb: "bind", group: candidate.kind.Group, resource: resource, namespace: namespace, name: name},
		place: candidate.place,
	}}
}

// resourceOf returns the resource of a template's kind for access reviews. If the
// API server does not serve the kind, the name of the resource is guessed by the
// usual rule. If another kind has that name, only a right to the whole group will
// do.
func resourceOf(mapper meta.RESTMapper, candidate *candidate) (resource schema.GroupResource, guessed bool) {
	if candidate.resource != nil {
		return candidate.resource.Resource.GroupResource(), false
	}
	plural, _ := meta.UnsafeGuessKindToResource(candidate.kind)
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
	for i, demand := range demands {
		reviews.run(func() {
			allowed, err := c.may(ctx, user, demand.right)
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

// unanswered denies a request because an access review failed: no right is taken
// for granted.
func unanswered(err error) Finding {
	return Finding{Level: Forbid, Place: "spec", Cause: fmt.Sprintf("your rights could not be checked: %v", err), Remedy: "try again"}
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
		finding.Cause = fmt.Sprintf("user %q may not %s, and a Configuration does not grant rights", user, missing)
		finding.Remedy = fmt.Sprintf("request these rights, or the verb %s on the Configuration", verbDelegate)
		switch {
		case d.verb == "impersonate":
			finding.Cause = fmt.Sprintf("user %q may not %s, with whose rights the objects would be created", user, missing)
			finding.Remedy = "request that right, or remove the field"
		case d.unknownKind != "":
			finding.Cause += fmt.Sprintf(" (the API server does not serve kind %s yet; its resource is usually called %s)", d.unknownKind,
				d.resource)
		}
		findings = append(findings, finding)
		verbs = nil
	}
	return findings
}
