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

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/plan"
)

// Try asks the API server whether it would make an object, under another name
// since one of that name exists. Nothing is made. Nil means yes, or that only the
// existing object stands in the way, or that a webhook does not answer such
// questions.
func (c *Client) Try(ctx context.Context, want *plan.Desired) error {
	body := (&unstructured.Unstructured{Object: want.Content}).DeepCopy()
	name := body.GetName()
	sum := sha256.Sum256([]byte(name))
	body.SetName("akri-try-" + hex.EncodeToString(sum[:4]))
	_, err := c.api.Resource(want.Resource).Namespace(body.GetNamespace()).
		Create(ctx, body, metav1.CreateOptions{FieldManager: v0.FieldManagerController, DryRun: []string{metav1.DryRunAll}})
	if err == nil || onlyTheOldOne(err) {
		return nil
	}
	return answer(v0.ReasonImmutable, fmt.Sprintf("%s %s has to be deleted and made anew, and the API server would refuse the new one, so the old one is kept: %s",
		want.Kind.Kind, name, serverSays(err)), err)
}

// onlyTheOldOne: the answer would be another without the existing object, or is
// none because this was only a question. The API server says so only in words.
func onlyTheOldOne(err error) bool {
	text := err.Error()
	return apierrors.IsAlreadyExists(err) ||
		apierrors.IsForbidden(err) && strings.Contains(text, "exceeded quota") ||
		apierrors.IsInvalid(err) && strings.Contains(text, "already allocated") ||
		apierrors.IsBadRequest(err) && strings.Contains(text, "dry run")
}
