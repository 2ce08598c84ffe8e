package webhook

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v0 "akri.sh/akri/api/v0"
)

// verbDelegate on a Configuration lets its writer have objects made that he could
// not make himself.
const verbDelegate = "delegate"

// authorizer refuses a requester who would get done, by way of a Configuration,
// what he may not do himself. It looks at templates, not at what they give for
// some device: a condition that no stand-in fulfils hides nothing.
type authorizer struct {
	*cluster
}

// demand is a right that some template takes.
type demand struct {
	right
	place string
	// guessed: the API server does not serve the kind, and the resource's name is
	// made up from it.
	guessed bool
}

func (a authorizer) look(ctx context.Context, r *review) []Finding {
	home := r.configuration.Namespace
	if account := r.configuration.Spec.ServiceAccountName; account != "" {
		// What is made is made with the rights of the account: whoever may act as
		// the account could do it himself.
		return a.missing(ctx, r, []demand{{
			right: right{verb: "impersonate", resource: "serviceaccounts", namespace: home, name: account},
			place: "spec.serviceAccountName",
		}})
	}
	if r.delegated {
		return nil
	}
	return a.missing(ctx, r, a.demands(r))
}

// delegation asks whether the requester holds verbDelegate.
type delegation struct {
	*cluster
}

func (d delegation) look(ctx context.Context, r *review) []Finding {
	allowed, err := d.may(ctx, r.user, right{
		verb: verbDelegate, group: v0.Domain, resource: v0.ConfigurationResource.Resource,
		namespace: r.configuration.Namespace, name: r.configuration.Name,
	})
	if err != nil {
		return []Finding{unanswered(err)}
	}
	r.delegated = allowed
	return nil
}

// demands are the rights that the templates take.
func (a authorizer) demands(r *review) []demand {
	var demands []demand
	seen := map[right]bool{}
	add := func(t *trial, resource schema.GroupResource, guessed bool, verbs ...string) {
		for _, verb := range verbs {
			demand := demand{
				right:   right{verb: verb, group: resource.Group, resource: resource.Resource, namespace: t.namespace, name: t.name},
				place:   t.place,
				guessed: guessed,
			}
			if !seen[demand.right] {
				seen[demand.right] = true
				demands = append(demands, demand)
			}
		}
	}
	for _, t := range r.trials {
		resource, guessed := a.resource(t)
		add(t, resource, guessed, "create", "patch", "delete")
		switch {
		case t.kind.Group != "rbac.authorization.k8s.io":
		case strings.HasSuffix(t.kind.Kind, "Binding"):
			demands = append(demands, bound(t)...)
		default:
			add(t, resource, guessed, "escalate")
		}
	}
	return demands
}

// bound is the right to bind the role that a binding names. Bindings and roles
// are rendered only where the operator of the controller allows it.
func bound(t *trial) []demand {
	reference, _ := t.written["roleRef"].(map[string]any)
	kind, _ := reference["kind"].(string)
	name, _ := reference["name"].(string)
	resource := "clusterroles"
	namespace := ""
	if kind == "Role" {
		resource, namespace = "roles", t.namespace
	}
	if hasExpression(reference) {
		resource, namespace, name = "*", "", ""
	}
	return []demand{{right: right{verb: "bind", group: t.kind.Group, resource: resource, namespace: namespace, name: name}, place: t.place}}
}

// resource is what access reviews call a kind. One that is not served yet is
// called by the rule that nearly all kinds follow, unless another kind has that
// name: then only a right to everything in the group will do.
func (a authorizer) resource(t *trial) (resource schema.GroupResource, guessed bool) {
	if t.resource != nil {
		return t.resource.Resource.GroupResource(), false
	}
	plural, _ := meta.UnsafeGuessKindToResource(t.kind)
	if kinds, err := a.mapper.KindsFor(plural.GroupResource().WithVersion("")); err == nil && len(kinds) > 0 {
		plural.Resource = "*"
	}
	return plural.GroupResource(), true
}

// missing are the demands that the requester does not meet.
func (a authorizer) missing(ctx context.Context, r *review, demands []demand) []Finding {
	var mutex sync.Mutex
	lacking := map[int]bool{}
	var failure error
	crew := newCrew()
	for i, demand := range demands {
		crew.run(func() {
			allowed, err := a.may(ctx, r.user, demand.right)
			mutex.Lock()
			defer mutex.Unlock()
			if err != nil {
				failure = err
			} else if !allowed {
				lacking[i] = true
			}
		})
	}
	crew.wait()
	if failure != nil {
		return []Finding{unanswered(failure)}
	}
	return forbidden(r, demands, lacking)
}

// unanswered: rights that cannot be asked for are not taken for granted.
func unanswered(err error) Finding {
	return Finding{Level: Forbid, Place: "spec", Cause: fmt.Sprintf("your rights could not be checked: %v", err), Remedy: "try again"}
}

// forbidden says, for each place, which rights are missing.
func forbidden(r *review, demands []demand, lacking map[int]bool) []Finding {
	var findings []Finding
	var verbs []string
	for i, demand := range demands {
		if lacking[i] {
			verbs = append(verbs, demand.verb)
		}
		last := i == len(demands)-1 || demands[i+1].place != demand.place || demands[i+1].resource != demand.resource
		if !last || len(verbs) == 0 {
			continue
		}
		wanted := demand.right
		slices.Sort(verbs)
		wanted.verb = strings.Join(slices.Compact(verbs), ", ")
		finding := Finding{Level: Forbid, Place: demand.place}
		finding.Cause = fmt.Sprintf("user %q may not %s, and a Configuration does not lend rights", r.user.Username, wanted)
		finding.Remedy = fmt.Sprintf("ask for these rights, or for the verb %s on the Configuration", verbDelegate)
		switch {
		case demand.verb == "impersonate":
			finding.Cause = fmt.Sprintf("user %q may not %s, whose rights the objects would be made with", r.user.Username, wanted)
			finding.Remedy = "ask for that right, or remove the field"
		case demand.guessed:
			finding.Cause += fmt.Sprintf(" (the API server does not serve kind %s yet; %s is what its resource would usually be called)", kindName(r, demand.place), demand.resource)
		}
		findings = append(findings, finding)
		verbs = nil
	}
	return findings
}

func kindName(r *review, place string) string {
	for _, t := range r.trials {
		if t.place == place {
			return t.kind.Kind
		}
	}
	return ""
}
