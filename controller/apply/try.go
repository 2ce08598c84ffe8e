package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/controller/problem"
)

// Try asks the API server by a dry run whether it would create an object, under
// another name because the object's own is taken. It returns nil if so, if only the
// existing object is in the way, or if a webhook does not support dry run.
func (c *Client) Try(ctx context.Context, want *plan.Desired) error {
	body := (&unstructured.Unstructured{Object: want.Content}).DeepCopy()
	name := body.GetName()
	sum := sha256.Sum256([]byte(name))
	body.SetName("akri-try-" + hex.EncodeToString(sum[:4]))
	_, err := c.api.Apply(ctx, want.Resource, types.NamespacedName{Namespace: body.GetNamespace(), Name: body.GetName()}, body.Object,
		metav1.ApplyOptions{FieldManager: v0.FieldManagerController, Force: true, DryRun: []string{metav1.DryRunAll}})
	if err == nil || onlyExistingObject(err) {
		return nil
	}
	err = redact(want.Resource, err)
	return problem.Answered(v0.ReasonImmutable,
		fmt.Sprintf("%s %s must be deleted and recreated, but the API server would reject the new object, so the old one is kept",
			want.Kind.Kind, name), err)
}

// onlyExistingObject reports whether the rejection is due to the existing object, or
// to a webhook that does not support dry run. Only the message says so.
func onlyExistingObject(err error) bool {
	text, refused := err.Error(), problem.ReadRefusal(problem.Request{}, err)
	return apierrors.IsAlreadyExists(err) ||
		refused != nil && refused.Reason == v0.ReasonQuotaExceeded ||
		apierrors.IsInvalid(err) && strings.Contains(text, "already allocated") ||
		apierrors.IsBadRequest(err) && strings.Contains(text, "dry run")
}
