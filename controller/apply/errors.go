package apply

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/internal/finding"
)

// ConflictError returns the error for an object that belongs to another owner than that of
// the claim. It names one of the same namespace only: others are no business of the author.
func ConflictError(what string, claim ownership.Claim, state ownership.State) *problem.Error {
	found := finding.Mistake{
		Cause: what + " exists and was not created for this Configuration",
		Hint: "give the template another metadata.name, or annotate it akri.sh/on-conflict: adopt, " +
			"which takes over an object without an owner, or skip, which leaves it as it is",
	}
	if state.Owner != "" && state.Confirmed && state.Parent.Namespace == claim.Parent.Namespace {
		found.Cause = fmt.Sprintf("%s exists and belongs to %s", what, state.Parent)
		found.Hint = "give the template another metadata.name, or remove the object from the templates of the other Configuration"
	}
	return &problem.Error{Mistake: found, Reason: v0.ReasonConflict, Retryable: true}
}

// ImmutableHint returns the remedy for a change that the API server does not allow.
func ImmutableHint(kind schema.GroupKind) string {
	lost := "its Pods, its addresses and what else depends on it"
	if kind == (schema.GroupKind{Kind: "PersistentVolumeClaim"}) {
		lost = "the data of its volume, unless the volume is retained"
	}
	return "undo the change, or annotate the template akri.sh/on-immutable: recreate, which deletes the object and " + lost
}

// WatchError returns the error for a resource that cannot be watched, or whose
// objects cannot be read.
func WatchError(kind schema.GroupVersionKind, resource schema.GroupVersionResource, err error) *problem.Error {
	if refused := problem.Refused(problem.Request{Resource: resource}, "", err); refused != nil {
		return refused
	}
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return plan.KindUnavailableError(kind, err)
	}
	return problem.Answered(v0.ReasonWatchFailed, fmt.Sprintf("%s cannot be watched, so their objects are left unchanged; "+
		"the controller keeps trying; check the API server and the connection to it; the latest error is", resource.GroupResource()), err)
}

// ErrChanged means that the object is not the one that the plan saw: it was
// deleted or replaced in the meantime. A new plan resolves it.
var ErrChanged = errors.New("the object has changed since it was read")

// ExistingError is a response of the API server to the update of an object that was to
// be created. Its message may quote the object.
type ExistingError struct{ Err error }

func (e *ExistingError) Error() string { return e.Err.Error() }

// Unwrap returns the response.
func (e *ExistingError) Unwrap() error { return e.Err }

// KeepsChangingError returns the error for an object whose requests all fail because
// it has changed.
func KeepsChangingError(object string, err error) *problem.Error {
	return problem.Answered(v0.ReasonApplyFailed, fmt.Sprintf("each request for %s is answered with 409 Conflict; "+
		"look for a webhook that does so", object), err)
}

// removalError returns what an error means for an object that is not desired any more.
func (c *Client) removalError(resource schema.GroupVersionResource, name types.NamespacedName, what string, err error) error {
	what = fmt.Sprintf("%s %s cannot be %s", resource.GroupResource(), name, what)
	refused := problem.Refused(c.request(resource, name.Namespace), what+": ", err)
	switch {
	case err == nil:
		return nil
	case apierrors.IsConflict(err):
		return fmt.Errorf("%w: %w", ErrChanged, err)
	case refused != nil:
		return refused
	}
	return problem.Answered(v0.ReasonDeleteFailed, what, err)
}

func (c *Client) request(resource schema.GroupVersionResource, namespace string) problem.Request {
	return problem.Request{Resource: resource, Namespace: namespace, Account: c.account}
}

// classify returns what an error of the API server means for a plan.
func (c *Client) classify(want *plan.Desired, err error) error {
	refused := problem.Refused(c.request(want.Resource, want.Ref.Namespace), "", err)
	switch {
	case apierrors.IsConflict(err), isOtherUID(err):
		return fmt.Errorf("%w: %w", ErrChanged, err)
	case refused != nil:
		return refused
	case meta.IsNoMatchError(err), isUnknownResource(err):
		return plan.KindUnavailableError(want.Kind, err)
	case isImmutable(err):
		return problem.Answered(v0.ReasonImmutable, ImmutableHint(want.Kind.GroupKind())+"; the API server says", err)
	}
	return problem.Answered(v0.ReasonApplyFailed, "the API server rejects it", err)
}

// isUnknownResource reports whether a 404 is about the path: it names no object.
func isUnknownResource(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == ""
}

// isOtherUID reports whether an update names the UID of an object that was
// replaced.
func isOtherUID(err error) bool {
	return slices.ContainsFunc(invalidCauses(err), func(cause metav1.StatusCause) bool {
		return cause.Field == "metadata.uid"
	})
}

// isImmutable reports whether the new object is valid but may not replace the old
// one. For some kinds only the message says so.
func isImmutable(err error) bool {
	return slices.ContainsFunc(invalidCauses(err), func(cause metav1.StatusCause) bool {
		return cause.Type == metav1.CauseTypeForbidden ||
			strings.Contains(cause.Message, "immutable") || strings.Contains(cause.Message, "may not change")
	})
}

// invalidCauses returns the fields that the API server rejects, or nil if the
// response is another.
func invalidCauses(err error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	return status.Status().Details.Causes
}

// redact returns an error of a request about an object with a text that may be
// repeated. The API server's messages may quote the object, so those about Secrets
// are reduced to the reason and the fields.
func redact(resource schema.GroupVersionResource, err error) error {
	if err == nil || resource.Group != "" || resource.Resource != "secrets" {
		return err
	}
	said := cmp.Or(string(apierrors.ReasonForError(err)), "unknown error")
	if found := problem.ReadRefusal(problem.Request{}, err); found != nil {
		said = found.Said
	}
	if said == err.Error() {
		return err
	}
	for _, cause := range invalidCauses(err) {
		said += " " + cause.Field
	}
	return &problem.Redacted{Text: said + " (the message is left out because it may quote the Secret)", Err: err}
}
