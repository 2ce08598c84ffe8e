package problem

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/finding"
)

// Request is what is known of a request that was refused.
type Request struct {
	Resource schema.GroupVersionResource
	// Namespace is that of the object; empty for cluster-scoped kinds.
	Namespace string
	// Account is the ServiceAccount that has sent it; empty for the controller itself.
	Account types.NamespacedName
}

// Refusal is the meaning of an answer.
type Refusal struct {
	finding.Mistake // who refuses it, and what mends it
	// Reason is a condition reason of api/v0.
	Reason string
	// Said is the beginning of the answer, without what may quote the object.
	Said string
	// Kind and Name are those of the object that must exist first, if it is known. The
	// kind may be in lower case.
	Kind, Name string
}

// ReadRefusal returns the meaning of an answer, or nil if the answer is about the object itself,
// or about something else than the object.
func ReadRefusal(request Request, err error) *Refusal {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return nil
	}
	message := status.Status().Message
	for _, row := range rows {
		match := row.pattern.FindStringSubmatchIndex(message)
		if match == nil {
			continue
		}
		expand := func(template string) string {
			template = strings.ReplaceAll(template, "NAMESPACE", request.Namespace)
			return string(row.pattern.ExpandString(nil, template, message, match))
		}
		found := &Refusal{
			Mistake: finding.Mistake{Cause: expand(row.cause), Hint: expand(row.hint)},
			Reason:  row.reason, Said: message[match[0]:match[1]],
		}
		switch {
		case row.reason == v0.ReasonReferenceMissing:
			found.Kind, found.Name = expand("${kind}"), expand("${name}")
		case row.cause == "":
			found.Mistake = request.missingRight(found.Said)
		}
		return found
	}
	return nil
}

// row is one kind of refusal. Its texts may have the groups of the pattern, such as
// ${name}, and NAMESPACE.
type row struct {
	reason      string
	pattern     *regexp.Regexp
	cause, hint string
}

// about matches what the API server says before the reason.
const about = `^[a-z0-9./-]+ ("[^"]*" )?is forbidden: `

// rows are in the order in which they are tried: webhooks and policies may quote
// anything.
var rows = []row{
	{v0.ReasonWebhookDenied, regexp.MustCompile(`^admission webhook "(?P<name>[^"]*)" denied the request`),
		`admission webhook "${name}" denies it`, "do what it asks for, or change its rules " +
			"(kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations)"},
	{v0.ReasonPolicyDenied,
		regexp.MustCompile(about + `ValidatingAdmissionPolicy '(?P<name>[^']*)' (with binding '[^']*' )?denied request`),
		"ValidatingAdmissionPolicy ${name} denies it",
		"do what it asks for, or change it (kubectl get validatingadmissionpolicy ${name} -o yaml)"},
	{v0.ReasonForbidden, regexp.MustCompile(`(?s)` + about + `User "[^"]*" cannot [a-z:-]+ (resource|path) .*`), "", ""},
	{v0.ReasonForbidden,
		regexp.MustCompile(`(?s)` + about + `user "[^"]*" \(groups=.* is attempting to grant RBAC permissions not currently held.*`),
		"a role may grant only what the account that applies it may do itself",
		"leave the rule out, or give it to this account, too: the ServiceAccount in spec.serviceAccountName, or the controller's"},
	{v0.ReasonQuotaExceeded,
		regexp.MustCompile(about + `(exceeded |failed |status unknown for )quota: (?P<name>[a-z0-9.-]+).*`),
		"ResourceQuota ${name} of namespace NAMESPACE does not admit it",
		"raise the quota, delete objects that it counts, or set in the template what it limits (kubectl describe quota ${name} -n NAMESPACE)"},
	{v0.ReasonQuotaExceeded, regexp.MustCompile(about + `insufficient quota to match these scopes: `),
		"no ResourceQuota of namespace NAMESPACE has a scope for it",
		"name another PriorityClass in the template, or ask for a quota with this scope"},
	{v0.ReasonLimitRangeViolated,
		regexp.MustCompile(about + `\[?((min|max)imum \S+ usage per \S+ is |\S+ max limit to request ratio per )`),
		"a LimitRange of namespace NAMESPACE does not admit it",
		"keep the resources of the template within it, or change it (kubectl describe limitrange -n NAMESPACE)"},
	{v0.ReasonPodSecurityViolated, regexp.MustCompile(about + `violates PodSecurity "(?P<level>[^"]*)"`),
		`namespace NAMESPACE admits only Pods of PodSecurity level "${level}"`,
		"set the security context that it asks for, or ask for another level of the namespace (label " +
			"pod-security.kubernetes.io/enforce; kubectl describe namespace NAMESPACE)"},
	{v0.ReasonNamespaceTerminating,
		regexp.MustCompile(about + `unable to create new content in namespace \S+ because it is being terminated`),
		"namespace NAMESPACE is being deleted",
		"wait until it is gone, and create it again (kubectl describe namespace NAMESPACE says what it waits for)"},
	{v0.ReasonReferenceMissing,
		regexp.MustCompile(about + `error looking up service account \S+: (?P<kind>serviceaccount) "(?P<name>[^"]+)" not found`),
		"ServiceAccount ${name} does not exist in namespace NAMESPACE",
		"create it (kubectl create serviceaccount ${name} -n NAMESPACE), here or by a template, or name another"},
	{v0.ReasonReferenceMissing, regexp.MustCompile(about + `no (?P<kind>PriorityClass) with name (?P<name>\S+) was found`),
		"PriorityClass ${name} does not exist", "create it, or name another in the template"},
	{v0.ReasonReferenceMissing, regexp.MustCompile(about + `pod rejected: (?P<kind>RuntimeClass) "(?P<name>[^"]+)" not found`),
		"RuntimeClass ${name} does not exist", "create it, or name another in the template"},
	{v0.ReasonReferenceMissing, regexp.MustCompile(`^(?P<kind>namespace)s "(?P<name>[^"]+)" not found`),
		"namespace ${name} does not exist", "create it (kubectl create namespace ${name})"},
}

// missingRight returns who lacks a permission, and which rule grants it.
func (r Request) missingRight(said string) finding.Mistake {
	rule := func(verbs string) string {
		return fmt.Sprintf("{apiGroups: [%q], resources: [%q], verbs: [%s]}", r.Resource.Group, r.Resource.Resource, verbs)
	}
	switch {
	case r.Account.Name == "":
		return finding.Mistake{
			Cause: "the controller may not manage " + r.Resource.GroupResource().String(),
			Hint: fmt.Sprintf("label a ClusterRole %s=true that has the rule %s (kubectl akri rbac prints it, ready to apply)",
				v0.LabelAggregate, rule("get, list, watch, create, patch, delete")),
		}
	case strings.Contains(said, "cannot impersonate"):
		return finding.Mistake{
			Cause: fmt.Sprintf("the controller may not impersonate ServiceAccount %s (spec.serviceAccountName)", r.Account),
			Hint: fmt.Sprintf("in namespace %s, bind the controller's ServiceAccount to a Role that has the rule "+
				"{apiGroups: [%q], resources: [serviceaccounts], resourceNames: [%s], verbs: [impersonate]}",
				r.Account.Namespace, "", r.Account.Name),
		}
	}
	return finding.Mistake{
		Cause: fmt.Sprintf("ServiceAccount %s (spec.serviceAccountName) may not manage %s", r.Account, r.Resource.GroupResource()),
		Hint:  "bind it to a Role that has the rule " + rule("get, create, patch, delete"),
	}
}
