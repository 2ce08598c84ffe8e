package refusal

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
	// Passing reports that the same request may be accepted later, whatever the template.
	Passing bool
	// Kind and Name are those of the object that must exist first, if it is known. The
	// kind may be in lower case.
	Kind, Name string
}

// Read returns the meaning of an answer, or nil if the answer is about the object itself,
// or about something else than the object.
func Read(request Request, err error) *Refusal {
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
			Reason:  row.reason, Said: message[match[0]:match[1]], Passing: row.passing,
		}
		switch row.reason {
		case v0.ReasonReferenceMissing:
			found.Kind, found.Name = expand("${kind}"), expand("${name}")
		case v0.ReasonForbidden:
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
	passing     bool
}

// about matches what the API server says before the reason.
const about = `^[a-z0-9.-]+ ("[^"]*" )?is forbidden: `

const describeQuota = "raise it, or delete what it counts (kubectl describe quota ${name} -n NAMESPACE)"

// rows are in the order in which they are tried: webhooks and policies may quote
// anything.
var rows = []row{
	{
		reason:  v0.ReasonWebhookDenied,
		pattern: regexp.MustCompile(`^admission webhook "(?P<name>[^"]*)" denied the request`),
		cause:   `admission webhook "${name}" denies it`,
		hint: "do what it asks for, or change its rules " +
			"(kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o wide)",
	}, {
		reason:  v0.ReasonPolicyDenied,
		pattern: regexp.MustCompile(about + `ValidatingAdmissionPolicy '(?P<name>[^']*)' (with binding '[^']*' )?denied request`),
		cause:   "ValidatingAdmissionPolicy ${name} denies it",
		hint:    "do what it asks for, or change it (kubectl get validatingadmissionpolicy ${name} -o yaml)",
	}, {
		reason:  v0.ReasonForbidden,
		pattern: regexp.MustCompile(`(?s)` + about + `User "[^"]*" cannot [a-z:-]+ (resource|path) .*`),
	}, {
		reason:  v0.ReasonQuotaExceeded,
		pattern: regexp.MustCompile(about + `exceeded quota: (?P<name>[a-z0-9.-]+).*`),
		cause:   "ResourceQuota ${name} of namespace NAMESPACE is exhausted", hint: describeQuota, passing: true,
	}, {
		reason:  v0.ReasonQuotaExceeded,
		pattern: regexp.MustCompile(about + `failed quota: (?P<name>[a-z0-9.-]+): must specify`),
		cause:   "ResourceQuota ${name} of namespace NAMESPACE limits what the template does not set",
		hint:    "set the resources that it limits in the template (kubectl describe quota ${name} -n NAMESPACE)",
	}, {
		reason: v0.ReasonQuotaExceeded,
		pattern: regexp.MustCompile(about +
			`(status unknown for quota: (?P<name>[a-z0-9.-]+)|insufficient quota to |quota usage is negative)`),
		cause: "a ResourceQuota of namespace NAMESPACE does not admit it", hint: describeQuota, passing: true,
	}, {
		reason:  v0.ReasonLimitRangeViolated,
		pattern: regexp.MustCompile(about + `\[?((min|max)imum \S+ usage per \S+ is |\S+ max limit to request ratio per )`),
		cause:   "a LimitRange of namespace NAMESPACE does not admit it",
		hint:    "keep the resources of the template within it, or change it (kubectl describe limitrange -n NAMESPACE)",
	}, {
		reason:  v0.ReasonPodSecurityViolated,
		pattern: regexp.MustCompile(about + `violates PodSecurity "(?P<level>[^"]*)"`),
		cause:   `namespace NAMESPACE admits only Pods of PodSecurity level "${level}"`,
		hint: "set the security context that it asks for in the template, or admit more: " +
			"kubectl label namespace NAMESPACE --overwrite pod-security.kubernetes.io/enforce=privileged",
	}, {
		reason:  v0.ReasonNamespaceTerminating,
		pattern: regexp.MustCompile(about + `unable to create new content in namespace \S+ because it is being terminated`),
		cause:   "namespace NAMESPACE is being deleted",
		hint:    "wait until it is gone, and create it again (kubectl describe namespace NAMESPACE says what it waits for)", passing: true,
	}, {
		reason:  v0.ReasonReferenceMissing,
		pattern: regexp.MustCompile(about + `error looking up service account \S+: (?P<kind>serviceaccount) "(?P<name>[^"]+)" not found`),
		cause:   "ServiceAccount ${name} does not exist in namespace NAMESPACE",
		hint:    "create it (kubectl create serviceaccount ${name} -n NAMESPACE), here or by a template, or name another",
	}, {
		reason:  v0.ReasonReferenceMissing,
		pattern: regexp.MustCompile(about + `no (?P<kind>PriorityClass) with name (?P<name>\S+) was found`),
		cause:   "${kind} ${name} does not exist", hint: "create it, or name another in the template",
	}, {
		reason:  v0.ReasonReferenceMissing,
		pattern: regexp.MustCompile(about + `pod rejected: (?P<kind>RuntimeClass) "(?P<name>[^"]+)" not found`),
		cause:   "${kind} ${name} does not exist", hint: "create it, or name another in the template",
	}, {
		reason:  v0.ReasonReferenceMissing,
		pattern: regexp.MustCompile(`^(?P<kind>namespace)s "(?P<name>[^"]+)" not found`),
		cause:   "namespace ${name} does not exist", hint: "create it (kubectl create namespace ${name})", passing: true,
	},
}

// missingRight returns who lacks a permission, and which rule grants it.
func (r Request) missingRight(said string) finding.Mistake {
	rule := func(verbs string) string {
		return fmt.Sprintf("{apiGroups: [%q], resources: [%q], verbs: [%s]}", r.Resource.Group, r.Resource.Resource, verbs)
	}
	switch {
	case r.Account.Name == "":
		return finding.Mistake{
			Cause: fmt.Sprintf("the controller may not manage %s", r.Resource.GroupResource()),
			Hint: fmt.Sprintf("label a ClusterRole %s=true that has the rule %s (kubectl akri rbac prints it, ready to apply)",
				v0.LabelAggregate, rule("get, list, watch, create, patch, delete")),
		}
	case strings.Contains(said, "cannot impersonate"):
		return finding.Mistake{
			Cause: fmt.Sprintf("the controller may not impersonate ServiceAccount %s (spec.serviceAccountName)", r.Account),
			Hint: fmt.Sprintf("in namespace %s, bind its own ServiceAccount to a Role that has the rule "+
				"{apiGroups: [%q], resources: [serviceaccounts], resourceNames: [%s], verbs: [impersonate]}",
				r.Account.Namespace, "", r.Account.Name),
		}
	}
	return finding.Mistake{
		Cause: fmt.Sprintf("ServiceAccount %s (spec.serviceAccountName) may not manage %s", r.Account, r.Resource.GroupResource()),
		Hint:  "bind it to a Role that has the rule " + rule("get, create, patch, delete"),
	}
}
