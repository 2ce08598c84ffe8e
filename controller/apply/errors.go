package apply

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v0 "akri.sh/akri/api/v0"
)

// Error is a step that failed, in words for the Configuration's author.
type Error struct {
	// Reason is the condition reason: one of [v0.ReasonKindUnavailable],
	// [v0.ReasonForbidden], [v0.ReasonConflict], [v0.ReasonImmutable],
	// [v0.ReasonApplyFailed], [v0.ReasonDeleteFailed].
	Reason string
	// Cause is what happened and what to do.
	Cause string
	// Err is the API server's answer, if there is one.
	Err error
}

func (e *Error) Error() string { return e.Cause }

func (e *Error) Unwrap() error { return e.Err }

// Reason is the condition reason of a step's error; empty if it is another error,
// or none.
func Reason(err error) string {
	if answer, ok := errors.AsType[*Error](err); ok {
		return answer.Reason
	}
	return ""
}

// KindUnavailable says that the API server does not serve a kind.
func KindUnavailable(kind schema.GroupVersionKind, err error) *Error {
	return &Error{
		Reason: v0.ReasonKindUnavailable,
		Cause: fmt.Sprintf("the API server has no kind %q in %q: correct apiVersion and kind, or install the CustomResourceDefinition that brings it",
			kind.Kind, kind.GroupVersion()),
		Err: err,
	}
}

// Conflict says that an object belongs to somebody else.
func Conflict(what string) *Error {
	return &Error{
		Reason: v0.ReasonConflict,
		Cause:  what + " exists and was not made for this Configuration: delete it, or give the template another metadata.name",
	}
}

// Forbidden says which right the controller lacks.
func Forbidden(resource schema.GroupVersionResource, err error) *Error {
	return &Error{
		Reason: v0.ReasonForbidden,
		Cause: fmt.Sprintf("the controller may not handle %s: label a ClusterRole %s=true that has the rule {apiGroups: [%q], resources: [%q], verbs: [get, list, watch, create, patch, delete]} (kubectl akri rbac prints it, ready to apply); the API server says: %s",
			resource.GroupResource(), AggregationLabel, resource.Group, resource.Resource, serverSays(err)),
		Err: err,
	}
}

// AggregationLabel on a ClusterRole adds its rules to the controller's.
const AggregationLabel = v0.Domain + "/aggregate-to-controller"

// Watch classifies why a resource cannot be watched.
func Watch(kind schema.GroupVersionKind, resource schema.GroupVersionResource, err error) *Error {
	switch {
	case apierrors.IsForbidden(err):
		return Forbidden(resource, err)
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return KindUnavailable(kind, err)
	}
	return &Error{Reason: v0.ReasonApplyFailed, Cause: fmt.Sprintf("%s cannot be watched: %s", resource.GroupResource(), serverSays(err)), Err: err}
}

// ErrChanged says that the object is not the one that the plan saw: it was
// deleted or replaced meanwhile. A new plan will do.
var ErrChanged = errors.New("the object has changed since it was looked at")

// forbidden says which right whoever acts lacks.
func (c *Client) forbidden(resource schema.GroupVersionResource, err error) *Error {
	if c.account.Name == "" {
		return Forbidden(resource, err)
	}
	if strings.Contains(err.Error(), "cannot impersonate") { // the API server says so only in words
		return &Error{
			Reason: v0.ReasonForbidden,
			Cause: fmt.Sprintf("the controller may not act as ServiceAccount %s (spec.serviceAccountName): in namespace %s, bind its own ServiceAccount to a Role that has the rule {apiGroups: [%q], resources: [serviceaccounts], resourceNames: [%s], verbs: [impersonate]}; the API server says: %s",
				c.account, c.account.Namespace, "", c.account.Name, serverSays(err)),
			Err: err,
		}
	}
	return &Error{
		Reason: v0.ReasonForbidden,
		Cause: fmt.Sprintf("ServiceAccount %s (spec.serviceAccountName) may not handle %s: bind it to a Role that has the rule {apiGroups: [%q], resources: [%q], verbs: [get, create, patch, delete]}; the API server says: %s",
			c.account, resource.GroupResource(), resource.Group, resource.Resource, serverSays(err)),
		Err: err,
	}
}

// classify turns the API server's answer into what it means for us.
func (c *Client) classify(kind schema.GroupVersionKind, resource schema.GroupVersionResource, err error) error {
	switch {
	case apierrors.IsForbidden(err) && !isTerminatingNamespace(err):
		return c.forbidden(resource, err)
	case meta.IsNoMatchError(err), isUnknownResource(err):
		return KindUnavailable(kind, err)
	case apierrors.IsConflict(err), isOtherUID(err):
		return ErrChanged
	case isImmutable(err):
		return &Error{Reason: v0.ReasonImmutable, Cause: serverSays(err), Err: err}
	}
	return &Error{Reason: v0.ReasonApplyFailed, Cause: "the API server refuses it: " + serverSays(err), Err: err}
}

// isUnknownResource: a 404 without the name of an object is about the path.
func isUnknownResource(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == ""
}

func isTerminatingNamespace(err error) bool {
	return apierrors.HasStatusCause(err, "NamespaceTerminating")
}

// isOtherUID: the UID that an update names is that of an object that was
// replaced.
func isOtherUID(err error) bool {
	return slices.ContainsFunc(invalidCauses(err), func(cause metav1.StatusCause) bool {
		return cause.Field == "metadata.uid"
	})
}

// isImmutable: the new object is valid but may not replace the old one. The API
// server says so only in words.
func isImmutable(err error) bool {
	return slices.ContainsFunc(invalidCauses(err), func(cause metav1.StatusCause) bool {
		return cause.Type == metav1.CauseTypeForbidden || strings.Contains(cause.Message, "immutable") || strings.Contains(cause.Message, "may not change")
	})
}

// invalidCauses are what the API server finds wrong with an object's fields; none
// if that is not its answer.
func invalidCauses(err error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	return status.Status().Details.Causes
}

// longestAnswer bounds what of the API server's words goes into a status: it
// repeats whole objects at times.
const longestAnswer = 1000

func serverSays(err error) string {
	text := err.Error()
	if len(text) > longestAnswer {
		text = strings.ToValidUTF8(text[:longestAnswer], "") + "…"
	}
	return text
}
