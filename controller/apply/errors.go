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
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/internal/finding"
	"akri.sh/akri/internal/text"
)

// ConflictError returns the error for an object that belongs to another owner.
func ConflictError(what string) *problem.Error {
	return &problem.Error{
		Mistake: finding.Mistake{
			Cause: what + " exists and was not created for this Configuration", Hint: "delete it, or give the template another metadata.name",
		},
		Reason:    v0.ReasonConflict,
		Retryable: true,
	}
}

// ForbiddenError returns the error that names the permission that the controller
// lacks.
func ForbiddenError(resource schema.GroupVersionResource, err error) *problem.Error {
	return answer(v0.ReasonForbidden, fmt.Sprintf("the controller may not manage %s; label a ClusterRole %s=true that has the rule "+
		"{apiGroups: [%q], resources: [%q], verbs: [get, list, watch, create, patch, delete]} "+
		"(kubectl akri rbac prints it, ready to apply); the API server says: %s",
		resource.GroupResource(), v0.LabelAggregate, resource.Group, resource.Resource, serverSays(err)), err)
}

// WatchError returns the error for a resource that cannot be watched, or whose
// objects cannot be read.
func WatchError(kind schema.GroupVersionKind, resource schema.GroupVersionResource, err error) *problem.Error {
	switch {
	case apierrors.IsForbidden(err):
		return ForbiddenError(resource, err)
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return plan.KindUnavailableError(kind, err)
	}
	return answer(v0.ReasonWatchFailed, fmt.Sprintf("%s cannot be watched, so that their objects are left alone; "+
		"the controller keeps trying; check the API server, and the connection to it; the latest error is: %s",
		resource.GroupResource(), serverSays(err)), err)
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
	return answer(v0.ReasonApplyFailed, fmt.Sprintf("each request for %s is refused because it is said to have changed; "+
		"look for a webhook that answers 409 Conflict: %v", object, err), err)
}

// answer returns the error for a response of the API server. If there is a remedy, the
// cause includes it: the response is last, because it may be long and be truncated.
func answer(reason, cause string, err error) *problem.Error {
	return &problem.Error{Mistake: finding.Mistake{Cause: cause}, Reason: reason, Retryable: true, Err: err}
}

func deleteError(resource schema.GroupVersionResource, name types.NamespacedName, what string, err error) *problem.Error {
	cause := fmt.Sprintf("%s %s cannot be %s: %s", resource.GroupResource(), name, what, serverSays(err))
	return answer(v0.ReasonDeleteFailed, cause, err)
}

// forbidden returns the error that names the permission that the acting account lacks.
func (c *Client) forbidden(resource schema.GroupVersionResource, err error) *problem.Error {
	if c.account.Name == "" {
		return ForbiddenError(resource, err)
	}
	if strings.Contains(err.Error(), "cannot impersonate") { // only the message says so
		return answer(v0.ReasonForbidden,
			fmt.Sprintf("the controller may not impersonate ServiceAccount %s (spec.serviceAccountName); in namespace %s, "+
				"bind its own ServiceAccount to a Role that has the rule "+
				"{apiGroups: [%q], resources: [serviceaccounts], resourceNames: [%s], verbs: [impersonate]}; the API server says: %s",
				c.account, c.account.Namespace, "", c.account.Name, serverSays(err)), err)
	}
	return answer(v0.ReasonForbidden,
		fmt.Sprintf("ServiceAccount %s (spec.serviceAccountName) may not manage %s; bind it to a Role that has the rule "+
			"{apiGroups: [%q], resources: [%q], verbs: [get, create, patch, delete]}; the API server says: %s",
			c.account, resource.GroupResource(), resource.Group, resource.Resource, serverSays(err)), err)
}

// classify returns what an error of the API server means for a plan.
func (c *Client) classify(kind schema.GroupVersionKind, resource schema.GroupVersionResource, err error) error {
	switch {
	case apierrors.IsForbidden(err) && !isTerminatingNamespace(err):
		return c.forbidden(resource, err)
	case meta.IsNoMatchError(err), isUnknownResource(err):
		return plan.KindUnavailableError(kind, err)
	case apierrors.IsConflict(err), isOtherUID(err):
		return fmt.Errorf("%w: %s", ErrChanged, serverSays(err))
	case isImmutable(err):
		return answer(v0.ReasonImmutable, serverSays(err), err)
	}
	return answer(v0.ReasonApplyFailed, "the API server rejects it: "+serverSays(err), err)
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

func isTerminatingNamespace(err error) bool {
	return apierrors.HasStatusCause(err, "NamespaceTerminating")
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

// maxAnswer bounds how many bytes of the API server's message a status repeats: the
// message may contain whole objects.
const maxAnswer = 1000

func serverSays(err error) string {
	return text.Truncate(err.Error(), maxAnswer)
}
