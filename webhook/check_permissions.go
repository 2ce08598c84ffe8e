package webhook

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/internal/finding"
)

// maxAccessReviews limits the access reviews that one request causes.
const maxAccessReviews = 400

// mayDelegate reports whether the requester has the verb delegate.
func (c *cluster) mayDelegate(ctx context.Context, r admissionRequest) (bool, []Finding) {
	allowed, err := c.may(ctx, r.user, delegation(r.configuration, r.configuration.Namespace))
	if err != nil {
		return false, []Finding{unanswered(err)}
	}
	return allowed, nil
}

// delegation returns the permission that stands for all others in a namespace; ""
// is all namespaces and the cluster-scoped objects.
func delegation(configuration *v0.Configuration, namespace string) right {
	return right{
		verb: verbDelegate, group: v0.Domain, resource: v0.ConfigurationResource.Resource,
		namespace: namespace, name: configuration.Name,
	}
}

// checkPermissions denies requests that would use a Configuration to bypass the
// requester's own RBAC. It checks templates, not the objects rendered for a device,
// so a condition that no made-up device meets hides nothing. delegated reports
// whether the requester has the verb delegate in the Configuration's namespace.
func (c *cluster) checkPermissions(ctx context.Context, r admissionRequest, candidates []*candidate, delegated bool) []Finding {
	requirements := c.requirementsOf(r.configuration, candidates)
	requirements = append(requirements, c.pruneRequirements(r, requirements)...)
	if delegated {
		requirements = slices.DeleteFunc(requirements, func(need requirement) bool {
			return need.verb != verbImpersonate && need.namespace == r.configuration.Namespace
		})
	}
	if len(requirements) > maxAccessReviews {
		return []Finding{{Deny, finding.Mistake{
			Path: "spec",
			Cause: fmt.Sprintf("it requires %d different permissions, which is more than the %d that are checked",
				len(requirements), maxAccessReviews),
			Hint: "use fewer templates with a literal metadata.name, or fewer Secrets and ConfigMaps",
		}}}
	}
	unmet, err := c.missing(ctx, r, requirements)
	if err == nil {
		unmet, err = c.undelegated(ctx, r, unmet)
	}
	if err != nil {
		return []Finding{unanswered(err)}
	}
	return forbidden(r, unmet)
}

// requirementsOf returns the permissions that a Configuration requires, each once.
func (c *cluster) requirementsOf(configuration *v0.Configuration, candidates []*candidate) []requirement {
	var requirements []requirement
	reads := c.readRequirements(candidates)
	if account := configuration.Spec.ServiceAccountName; account != "" {
		// Objects are created with the permissions of the account. A user who may
		// impersonate the account could create them directly. The controller reads
		// all objects with its own permissions.
		requirements = append(requirements, requirement{
			right: right{verb: verbImpersonate, resource: "serviceaccounts", namespace: configuration.Namespace, name: account},
			place: "spec.serviceAccountName",
		})
		for i := range reads {
			reads[i].ofAccount = true
		}
	} else {
		requirements = append(requirements, c.objectRequirements(candidates)...)
	}
	requirements = slices.Concat(requirements, reads, discoveryRequirements(configuration, c.requireUse))
	seen := map[right]bool{}
	return slices.DeleteFunc(requirements, func(need requirement) bool {
		repeated := seen[need.right]
		seen[need.right] = true
		return repeated
	})
}

// missing returns the requirements that are not met, in their order.
func (c *cluster) missing(ctx context.Context, r admissionRequest, requirements []requirement) ([]requirement, error) {
	allowed, errs := make([]bool, len(requirements)), make([]error, len(requirements))
	inParallel(len(requirements), func(i int) {
		allowed[i], errs[i] = c.may(ctx, requirements[i].subject(r), requirements[i].right)
	})
	var unmet []requirement
	for i, need := range requirements {
		if !allowed[i] {
			unmet = append(unmet, need)
		}
	}
	return unmet, cmp.Or(errs...)
}

// undelegated returns the requirements in other namespaces than the Configuration's for
// which the requester does not have the verb delegate there, and those in its own.
func (c *cluster) undelegated(ctx context.Context, r admissionRequest, unmet []requirement) ([]requirement, error) {
	elsewhere := map[string]bool{}
	var delegations []requirement
	for _, need := range unmet {
		if need.namespace != r.configuration.Namespace && !elsewhere[need.namespace] {
			elsewhere[need.namespace] = true
			delegations = append(delegations, requirement{right: delegation(r.configuration, need.namespace)})
		}
	}
	missing, err := c.missing(ctx, r, delegations)
	for _, need := range missing {
		elsewhere[need.namespace] = false
	}
	return slices.DeleteFunc(unmet, func(need requirement) bool { return elsewhere[need.namespace] }), err
}

// subject returns who must meet a requirement.
func (need requirement) subject(r admissionRequest) authenticationv1.UserInfo {
	if !need.ofAccount {
		return r.user
	}
	account := types.NamespacedName{Namespace: r.configuration.Namespace, Name: r.configuration.Spec.ServiceAccountName}
	return authenticationv1.UserInfo{Username: apply.Username(account), Groups: apply.Groups(account)}
}

// unanswered denies a request because an access review failed: no permission is
// assumed.
func unanswered(err error) Finding {
	return Finding{Forbid, finding.Mistake{Path: "spec", Cause: fmt.Sprintf("could not check your permissions: %v", err), Hint: "try again"}}
}

// forbidden returns a finding for each place and resource, with the verbs that are
// missing.
func forbidden(r admissionRequest, unmet []requirement) []Finding {
	var findings []Finding
	var verbs []string
	for i, need := range unmet {
		verbs = append(verbs, need.verb)
		if i+1 < len(unmet) && unmet[i+1].place == need.place && unmet[i+1].resource == need.resource {
			continue
		}
		slices.Sort(verbs)
		findings = append(findings, need.finding(r, strings.Join(slices.Compact(verbs), ", ")))
		verbs = nil
	}
	return findings
}

// finding denies a request because the subject of a requirement lacks verbs.
func (need requirement) finding(r admissionRequest, verbs string) Finding {
	missing := need.right
	missing.verb = verbs
	result := Finding{Forbid, finding.Mistake{Path: need.place}}
	switch {
	case need.verb == verbImpersonate:
		result.Cause = fmt.Sprintf("user %q may not %s, whose permissions would create the objects", r.user.Username, missing)
		result.Hint = "request that permission, or remove the field"
	case need.pruned != "":
		result.Cause = fmt.Sprintf("user %q may not %s, and without the former template %s its objects would be deleted",
			r.user.Username, missing, need.pruned)
		result.Hint = "request that permission, or keep the template"
	case need.ofAccount:
		result.Cause = fmt.Sprintf("ServiceAccount %s may not %s, and a Configuration does not grant permissions",
			r.configuration.Spec.ServiceAccountName, missing)
		result.Hint = "grant it that permission, or remove the annotation"
	default:
		result.Cause = fmt.Sprintf("user %q may not %s, and a Configuration does not grant permissions", r.user.Username, missing)
		result.Hint = fmt.Sprintf("request these permissions, or the verb %s on the Configuration", verbDelegate)
		if need.namespace != r.configuration.Namespace {
			result.Hint = "request these permissions"
		}
	}
	if need.unknownKind != "" {
		result.Cause += fmt.Sprintf(" (the API server does not serve kind %s yet; its resource is usually called %s)",
			need.unknownKind, need.resource)
	}
	return result
}
