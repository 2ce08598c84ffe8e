package webhook

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/apply"
)

// maxReviews limits the access reviews that one request causes.
const maxReviews = 400

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
	demands := c.demandsOf(r.configuration, candidates)
	demands = append(demands, c.pruneDemands(r, demands)...)
	if delegated {
		demands = slices.DeleteFunc(demands, func(d demand) bool {
			return d.verb != verbImpersonate && d.namespace == r.configuration.Namespace
		})
	}
	if len(demands) > maxReviews {
		return []Finding{{
			Level: Deny, Place: "spec",
			Cause: fmt.Sprintf("it requires %d different permissions, which is more than the %d that are checked", len(demands), maxReviews),
			Hint:  "use fewer templates with a literal metadata.name, or fewer Secrets and ConfigMaps",
		}}
	}
	lacking, err := c.unmet(ctx, r, demands)
	if err == nil {
		lacking, err = c.undelegated(ctx, r, lacking)
	}
	if err != nil {
		return []Finding{unanswered(err)}
	}
	return forbidden(r, lacking)
}

// demandsOf returns the permissions that a Configuration requires, each once.
func (c *cluster) demandsOf(configuration *v0.Configuration, candidates []*candidate) []demand {
	var demands []demand
	reads := c.readDemands(candidates)
	if account := configuration.Spec.ServiceAccountName; account != "" {
		// Objects are created with the permissions of the account. A user who may
		// impersonate the account could create them directly. The controller reads
		// all objects with its own permissions.
		demands = append(demands, demand{
			right: right{verb: verbImpersonate, resource: "serviceaccounts", namespace: configuration.Namespace, name: account},
			place: "spec.serviceAccountName",
		})
		for i := range reads {
			reads[i].ofAccount = true
		}
	} else {
		demands = append(demands, c.objectDemands(candidates)...)
	}
	demands = slices.Concat(demands, reads, discoveryDemands(configuration, c.requireUse))
	seen := map[right]bool{}
	return slices.DeleteFunc(demands, func(d demand) bool {
		repeated := seen[d.right]
		seen[d.right] = true
		return repeated
	})
}

// unmet returns the demands that are not met, in their order.
func (c *cluster) unmet(ctx context.Context, r admissionRequest, demands []demand) ([]demand, error) {
	var mu sync.Mutex
	allowed := make([]bool, len(demands))
	var failure error
	reviews := newParallel()
	for i, d := range demands {
		reviews.run(func() {
			met, err := c.may(ctx, d.subject(r), d.right)
			mu.Lock()
			defer mu.Unlock()
			if allowed[i] = met; err != nil {
				failure = err
			}
		})
	}
	reviews.wait()
	var lacking []demand
	for i, d := range demands {
		if !allowed[i] {
			lacking = append(lacking, d)
		}
	}
	return lacking, failure
}

// undelegated returns the demands in other namespaces than the Configuration's for
// which the requester does not have the verb delegate there, and those in its own.
func (c *cluster) undelegated(ctx context.Context, r admissionRequest, lacking []demand) ([]demand, error) {
	elsewhere := map[string]bool{}
	var delegations []demand
	for _, d := range lacking {
		if d.namespace != r.configuration.Namespace && !elsewhere[d.namespace] {
			elsewhere[d.namespace] = true
			delegations = append(delegations, demand{right: delegation(r.configuration, d.namespace)})
		}
	}
	missing, err := c.unmet(ctx, r, delegations)
	for _, d := range missing {
		elsewhere[d.namespace] = false
	}
	return slices.DeleteFunc(lacking, func(d demand) bool { return elsewhere[d.namespace] }), err
}

// subject returns who must meet a demand.
func (d demand) subject(r admissionRequest) authenticationv1.UserInfo {
	if !d.ofAccount {
		return r.user
	}
	account := types.NamespacedName{Namespace: r.configuration.Namespace, Name: r.configuration.Spec.ServiceAccountName}
	const all = "system:serviceaccounts"
	return authenticationv1.UserInfo{
		Username: apply.Username(account),
		Groups:   []string{all, all + ":" + account.Namespace, "system:authenticated"},
	}
}

// unanswered denies a request because an access review failed: no permission is
// assumed.
func unanswered(err error) Finding {
	return Finding{Level: Forbid, Place: "spec", Cause: fmt.Sprintf("could not check your permissions: %v", err), Hint: "try again"}
}

// forbidden returns a finding for each place and resource, with the verbs that are
// missing.
func forbidden(r admissionRequest, lacking []demand) []Finding {
	var findings []Finding
	var verbs []string
	for i, d := range lacking {
		verbs = append(verbs, d.verb)
		if i+1 < len(lacking) && lacking[i+1].place == d.place && lacking[i+1].resource == d.resource {
			continue
		}
		slices.Sort(verbs)
		findings = append(findings, d.finding(r, strings.Join(slices.Compact(verbs), ", ")))
		verbs = nil
	}
	return findings
}

// finding denies a request because the subject of a demand lacks verbs.
func (d demand) finding(r admissionRequest, verbs string) Finding {
	missing := d.right
	missing.verb = verbs
	finding := Finding{Level: Forbid, Place: d.place}
	switch {
	case d.verb == verbImpersonate:
		finding.Cause = fmt.Sprintf("user %q may not %s, whose permissions would create the objects", r.user.Username, missing)
		finding.Hint = "request that permission, or remove the field"
	case d.pruned != "":
		finding.Cause = fmt.Sprintf("user %q may not %s, and without the former template %s its objects would be deleted",
			r.user.Username, missing, strings.TrimPrefix(d.pruned, "spec."))
		finding.Hint = "request that permission, or keep the template"
	case d.ofAccount:
		finding.Cause = fmt.Sprintf("ServiceAccount %s may not %s, and a Configuration does not grant permissions",
			r.configuration.Spec.ServiceAccountName, missing)
		finding.Hint = "grant it that permission, or remove the annotation"
	default:
		finding.Cause = fmt.Sprintf("user %q may not %s, and a Configuration does not grant permissions", r.user.Username, missing)
		finding.Hint = fmt.Sprintf("request these permissions, or the verb %s on the Configuration", verbDelegate)
		if d.namespace != r.configuration.Namespace {
			finding.Hint = "request these permissions"
		}
	}
	if d.unknownKind != "" {
		finding.Cause += fmt.Sprintf(" (the API server does not serve kind %s yet; its resource is usually called %s)", d.unknownKind, d.resource)
	}
	return finding
}
