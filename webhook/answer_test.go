package webhook

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fielderrors "k8s.io/apimachinery/pkg/util/validation/field"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/internal/finding"
)

// What is not about the object keeps no Configuration out: the controller may be permitted to
// impersonate where the webhook is not, and a webhook without dry runs (which can no longer be
// registered, but old ones are still called) may admit what the controller writes.
func TestInconclusiveAnswers(t *testing.T) {
	a := apiAnswer{candidate: &candidate{place: "spec.x", kind: corev1.SchemeGroupVersion.WithKind("Pod")}, want: &plan.Desired{}}
	for says, answer := range map[string]error{
		"the webhook may not impersonate the ServiceAccount in spec.serviceAccountName": apierrors.NewForbidden(
			schema.GroupResource{Resource: "serviceaccounts"}, "maker",
			errors.New(`User "system:serviceaccount:akri-system:akri-webhook" cannot impersonate resource "serviceaccounts"`)),
		"another admission webhook does not support dry run": webhookerrors.NewDryRunUnsupportedErr("old.example"),
		"the API server could not decide":                    apierrors.NewTooManyRequestsError("wait"),
		"the API server could not decide: ":                  apierrors.NewInternalError(errors.New("etcd")),
	} {
		findings := a.interpret(&problem.Error{Reason: v0.ReasonForbidden, Err: answer})
		if len(findings) != 1 || findings[0].Level != Inconclusive || !strings.Contains(findings[0].Cause, says) {
			t.Errorf("%v: findings are %v, want one that is inconclusive", answer, findings)
		}
	}
}

// What the API server says about an object that exists, or renders from an existing
// device or for a Secret, is not shown: only the field and the reason.
func TestPrivateMessages(t *testing.T) {
	content := map[string]any{"spec": map[string]any{"hostname": "hush"}}
	pods := schema.GroupKind{Kind: "Pod"}
	responses := map[string]error{
		"a field": apierrors.NewInvalid(pods, "x", fielderrors.ErrorList{
			fielderrors.Invalid(fielderrors.NewPath("spec", "hostname"), "hush", "is hush"),
		}),
		"a diff": apierrors.NewInvalid(pods, "x", fielderrors.ErrorList{
			fielderrors.Forbidden(fielderrors.NewPath("spec"), "may not change: core.PodSpec{hush}"),
		}),
		"a denial": &apierrors.StatusError{ErrStatus: metav1.Status{Code: 400, Reason: metav1.StatusReasonBadRequest,
			Message: "admission webhook \"x\" denied the request: hush"}},
		"a policy": &apierrors.StatusError{ErrStatus: metav1.Status{Code: 422, Reason: metav1.StatusReasonInvalid,
			Message: "ValidatingAdmissionPolicy 'x' denied request: hush"}},
		"an internal error": apierrors.NewInternalError(errors.New("hush")),
		"a quota": apierrors.NewForbidden(schema.GroupResource{}, "x",
			errors.New("exceeded quota: q, requested: pods=1, used: pods=hush")),
		"a type": apierrors.NewInternalError(
			errors.New("failed to create typed patch object: .spec.hostname: expected numeric, got hush")),
	}
	pod := &candidate{place: "spec.x", kind: corev1.SchemeGroupVersion.WithKind("Pod"), source: map[string]any{
		"spec": map[string]any{"hostname": "{{ INSTANCE_PROPERTIES.HOST }}"},
	}}
	secret := &candidate{place: "spec.x", kind: corev1.SchemeGroupVersion.WithKind("Secret"), source: map[string]any{
		"spec": map[string]any{"hostname": "hush{{ INSTANCE_PROPERTIES.HOST }}"},
	}}
	for how, a := range map[string]apiAnswer{
		"an existing object":                 {candidate: pod, existing: true},
		"a property of an existing device":   {candidate: pod, devices: deviceFactory{observed: true}},
		"a Secret":                           {candidate: secret},
		"a Secret, and legacy fields are it": {candidate: &candidate{place: "spec.x", kind: secret.kind}},
	} {
		for what, response := range responses {
			t.Run(how+", "+what, func(t *testing.T) {
				a.want = &plan.Desired{Content: content}
				failure := &problem.Error{Mistake: finding.Mistake{Cause: response.Error()}, Reason: v0.ReasonApplyFailed, Err: response}
				findings := a.interpret(failure)
				if len(findings) == 0 {
					t.Error("there is no finding")
				}
				for _, found := range findings {
					if strings.Contains(found.Error(), "hush") {
						t.Errorf("the finding is %s", found)
					}
				}
				if text := a.immutable(failure); strings.Contains(text, "hush") {
					t.Errorf("the message is %s", text)
				}
			})
		}
	}
	// The author's own new object is theirs.
	a := apiAnswer{candidate: pod, want: &plan.Desired{Content: content}}
	findings := a.interpret(&problem.Error{Reason: v0.ReasonApplyFailed, Err: responses["a field"]})
	if len(findings) != 1 || !strings.Contains(findings[0].Cause, `the string "hush"`) {
		t.Errorf("findings are %v", findings)
	}
}

// A remedy fits the field, and whether an expression gives the value.
func TestRemedies(t *testing.T) {
	for _, tc := range []struct {
		field, message string
		expression     bool
		want           string
	}{
		{"spec.ports[0].targetPort", `Invalid value: "8080": must contain at least one letter (a-z)`, false, "without quotes"},
		{"spec.ports[0].targetPort", `Invalid value: "8080": must contain at least one letter (a-z)`, true, "| int"},
		{"spec.containers[0].ports[0].name", `Invalid value: "8080": must contain at least one letter (a-z)`, true, ""},
		{"metadata.labels", `Invalid value: "a b": a valid label must be an empty string or`, true, "labelValue"},
		{"metadata.labels", `Invalid value: "a b": a valid label must be an empty string or`, false, ""},
		{"data[a b]", `Invalid value: "a b": a valid config key must consist of`, true, "labelValue"},
		{"metadata.name", `Invalid value: "A": a lowercase RFC 1123 subdomain must`, true, "dnsLabel"},
		{"spec.clusterIP", "may not change once set", true, ""},
	} {
		got := remedyOf(metav1.StatusCause{Field: tc.field, Message: tc.message}, tc.expression)
		if !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
			t.Errorf("%s: %q, want %q", tc.field, got, tc.want)
		}
	}
}

// What is refused only because another object of the templates does not exist yet is not
// denied.
func TestObjectsThatNeedEachOther(t *testing.T) {
	own := inventory.Ref{Kind: "Pod", Namespace: "plant", Name: "cam"}
	siblings := []inventory.Ref{
		{Kind: "Pod", Name: "cam"}, {Kind: "ServiceAccount", Name: "broker"}, {Group: "x.io", Kind: "Gateway", Name: "cam"},
		{Group: "x.io", Kind: "Route", Name: "front"},
	}
	const account = `pods "cam" is forbidden: error looking up service account plant/NAME: serviceaccount "NAME" not found`
	const policy = `pods "cam" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: `
	const webhook = `admission webhook "x" denied the request: `
	for message, want := range map[string]Level{
		strings.ReplaceAll(account, "NAME", "broker"):                     Inconclusive,
		strings.ReplaceAll(account, "NAME", "front"):                      Deny, // of another kind
		`pods "cam" is forbidden: no PriorityClass with name x was found`: Deny,
		webhook + `Route "front" does not exist`:                          Inconclusive,
		webhook + `there is no front.`:                                    Deny,
		webhook + `front does not exist`:                                  Inconclusive,
		webhook + `the label of cam does not exist`:                       Deny,
		webhook + `gateway "cam" not found`:                               Inconclusive,
		webhook + `Pod "cam" has no label`:                                Deny,
		webhook + `front-door is closed`:                                  Deny,
		policy + `route front is needed first`:                            Deny,
		policy + `no`:                                                     Deny,
		`namespaces "plant" not found`:                                    Inconclusive,
	} {
		answer := &apierrors.StatusError{ErrStatus: metav1.Status{Code: 403, Reason: metav1.StatusReasonForbidden, Message: message}}
		a := apiAnswer{
			candidate: &candidate{place: "spec.x", kind: corev1.SchemeGroupVersion.WithKind("Pod")},
			want:      &plan.Desired{Ref: own}, devices: deviceFactory{siblings: siblings},
		}
		findings := a.interpret(&problem.Error{Reason: v0.ReasonApplyFailed, Err: answer})
		if len(findings) != 1 || findings[0].Level != want || findings[0].Hint == "" {
			t.Errorf("%s: %+v, want level %v", message, findings, want)
		}
		a.existing = true
		shown := a.interpret(&problem.Error{Err: answer})[0].Error()
		if strings.Contains(shown, "broker") || strings.Contains(shown, "front") {
			t.Errorf("%s: what the requester may not see is shown: %s", message, shown)
		}
	}
}
