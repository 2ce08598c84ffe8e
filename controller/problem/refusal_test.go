package problem

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
)

// The answers are those of Kubernetes 1.37.
func TestRefusals(t *testing.T) {
	const secret = "hunter2"
	for message, want := range map[string]struct{ reason, says string }{
		`services "s" is forbidden: exceeded quota: q, requested: services=1, used: services=2, limited: services=2`: {
			v0.ReasonQuotaExceeded, "kubectl describe quota q -n plant",
		},
		`pods "p" is forbidden: failed quota: cpu-q: must specify limits.cpu for: c`: {v0.ReasonQuotaExceeded, "cpu-q"},
		`pods "p" is forbidden: status unknown for quota: q, resources: pods`:        {v0.ReasonQuotaExceeded, "q"},
		`pods "p" is forbidden: maximum cpu usage per Container is 100m, but limit is 1`: {
			v0.ReasonLimitRangeViolated, "limitrange -n plant",
		},
		`pods "p" is forbidden: [minimum cpu usage per Pod is 1, but request is 0, maximum memory usage`: {v0.ReasonLimitRangeViolated, ""},
		`pods "p" is forbidden: cpu max limit to request ratio per Container is 2, but provided`:         {v0.ReasonLimitRangeViolated, ""},
		`pods "p" is forbidden: violates PodSecurity "restricted:latest": ` + secret: {
			v0.ReasonPodSecurityViolated, "kubectl describe namespace plant",
		},
		`pods "p" is forbidden: ValidatingAdmissionPolicy 'x' with binding 'y' denied request: ` + secret: {
			v0.ReasonPolicyDenied, "kubectl get validatingadmissionpolicy x",
		},
		`admission webhook "x.example.com" denied the request: services "s" is forbidden: User "u" cannot create resource ` + secret: {
			v0.ReasonWebhookDenied, `"x.example.com"`,
		},
		`admission webhook "x" denied the request without explanation`: {v0.ReasonWebhookDenied, `"x"`},
		`pods "p" is forbidden: error looking up service account plant/sa: serviceaccount "sa" not found`: {
			v0.ReasonReferenceMissing, "kubectl create serviceaccount sa -n plant",
		},
		`pods "p" is forbidden: no PriorityClass with name high was found`:   {v0.ReasonReferenceMissing, "PriorityClass high"},
		`pods "p" is forbidden: pod rejected: RuntimeClass "kata" not found`: {v0.ReasonReferenceMissing, "RuntimeClass kata"},
		`namespaces "plant" not found`:                                       {v0.ReasonReferenceMissing, "kubectl create namespace plant"},
		`pods "p" is forbidden: unable to create new content in namespace plant because it is being terminated`: {
			v0.ReasonNamespaceTerminating, "",
		},
		`services is forbidden: User "u" cannot list resource "services" in API group "" at the cluster scope`: {
			v0.ReasonForbidden, "akri rbac",
		},
		`services "s" is forbidden: User "u" cannot patch resource "services" in API group "" in the namespace "plant"`: {
			v0.ReasonForbidden, "akri rbac",
		},
		`pods "p" is forbidden: insufficient quota to match these scopes: [{PriorityClass In [high]}]`: {v0.ReasonQuotaExceeded, "scope"},
		`roles.rbac.authorization.k8s.io "r" is forbidden: user "u" (groups=["g"]) is attempting to grant RBAC permissions not currently held:
{APIGroups:[""]}`: {v0.ReasonForbidden, "a role may grant only"},
		// Not about permissions, and nothing that the table knows.
		`pods "p" is forbidden: the integer value of priority (1) must not be provided in pod spec`: {},
		`pods "p" is forbidden: ` + secret + ` is forbidden: User "u" cannot patch resource`:        {},
		`services "s" not found`: {},
	} {
		err := fmt.Errorf("wrapped: %w", &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Message: message}})
		found := ReadRefusal(Request{Resource: schema.GroupVersionResource{Version: "v1", Resource: "services"}, Namespace: "plant"}, err)
		switch {
		case found == nil && want.reason == "":
		case found == nil || found.Reason != want.reason || !strings.Contains(found.Mistake.Error(), want.says):
			t.Errorf("%s: %+v, want %+v", message, found, want)
		case strings.Contains(found.Mistake.Error()+found.Said, secret) || strings.ContainsAny(found.Mistake.Error(), "$<"):
			t.Errorf("%s: %+v", message, found)
		case found.Reason == v0.ReasonReferenceMissing && (found.Kind == "" || found.Name == ""):
			t.Errorf("%s: it is not said what is missing: %+v", message, found)
		case found.Reason != v0.ReasonForbidden && strings.Contains(found.Mistake.Error(), "Role"):
			t.Errorf("%s: the remedy is about permissions: %+v", message, found)
		}
	}
}

// A missing permission is that of who has sent the request.
func TestMissingRights(t *testing.T) {
	account := types.NamespacedName{Namespace: "plant", Name: "cameras"}
	for verb, want := range map[string]string{
		"patch": "bind it to a Role", "impersonate": "bind the controller's ServiceAccount", "impersonate:user-info": "bind the controller's",
	} {
		message := `services "s" is forbidden: User "u" cannot ` + verb + ` resource "services" in API group ""`
		err := &apierrors.StatusError{ErrStatus: metav1.Status{Message: message}}
		found := ReadRefusal(Request{Namespace: "plant", Account: account}, err)
		if found == nil || !strings.Contains(found.Mistake.Error(), want) || !strings.Contains(found.Cause, "plant/cameras") {
			t.Errorf("%s: %+v", verb, found)
		}
	}
}
