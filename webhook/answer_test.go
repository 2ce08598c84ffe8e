package webhook

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/controller/problem"
)

// The RoleBinding that lets the controller impersonate an account may not name the
// webhook. That does not keep Configurations out.
func TestTheWebhookMayNotImpersonate(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "serviceaccounts"}, "maker",
		errors.New(`User "system:serviceaccount:akri-system:akri-webhook" cannot impersonate resource "serviceaccounts"`))
	a := answer{candidate: &candidate{place: "spec.x", kind: corev1.SchemeGroupVersion.WithKind("Pod")}, want: &plan.Desired{}}
	findings := a.interpret(&problem.Error{Reason: v0.ReasonForbidden, Cause: "the controller may not impersonate it", Err: forbidden})
	if len(findings) != 1 || findings[0].Level != Inconclusive ||
		!strings.Contains(findings[0].Cause, "the webhook may not impersonate the ServiceAccount in spec.serviceAccountName") {
		t.Errorf("findings are %v, want one that is inconclusive", findings)
	}
}
