package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
)

// Client acts as the controller, or as a ServiceAccount. It is safe for concurrent
// use.
type Client struct {
	api dynamic.Interface
	// account is the ServiceAccount; empty for the controller itself.
	account types.NamespacedName
}

// NewClient returns a Client that acts as the controller.
func NewClient(api dynamic.Interface) *Client { return &Client{api: api} }

// neverExisted is a resourceVersion that no object has: etcd's revisions start at 1,
// and the first write gets 2. An apply with it creates
// an object, because versions are compared only with existing objects, and is
// refused with 409 if the object exists.
const neverExisted = "1"

// Create applies an object that does not exist. If it exists nevertheless, it is
// updated if the claim owns it, and left untouched
// otherwise, and the error is a Conflict.
func (c *Client) Create(ctx context.Context, want *plan.Desired, claim ownership.Claim) (*unstructured.Unstructured, error) {
	body := shallow(want.Content)
	body.SetResourceVersion(neverExisted)
	created, err := c.apply(ctx, want.Resource, body, false)
	if err == nil {
		return created, nil
	}
	if err := c.classify(want.Kind, want.Resource, err); !errors.Is(err, ErrChanged) {
		return nil, err
	}
	// It exists: the watch is behind, a label was removed, or the object has another owner.
	existing, err := c.api.Resource(want.Resource).Namespace(body.GetNamespace()).Get(ctx, body.GetName(), metav1.GetOptions{})
	if err != nil {
		return nil, c.classify(want.Kind, want.Resource, err)
	}
	if !claim.Owns(ownership.Of(existing)) {
		return nil, ConflictError(fmt.Sprintf("%s %s", want.Kind.Kind, body.GetName()))
	}
	return c.Update(ctx, want, existing.GetUID())
}

// Update applies over the parent's object of that UID. Fields that other
// clients changed are reverted.
func (c *Client) Update(ctx context.Context, want *plan.Desired, uid types.UID) (*unstructured.Unstructured, error) {
	body := shallow(want.Content)
	body.SetUID(uid)
	updated, err := c.apply(ctx, want.Resource, body, true)
	if err != nil {
		return nil, c.classify(want.Kind, want.Resource, err)
	}
	return updated, nil
}

// shallow returns a copy of an object whose metadata can be set without changing
// the original.
func shallow(content map[string]any) *unstructured.Unstructured {
	body := maps.Clone(content)
	if metadata, ok := body["metadata"].(map[string]any); ok {
		body["metadata"] = maps.Clone(metadata)
	}
	return &unstructured.Unstructured{Object: body}
}

func (c *Client) apply(
	ctx context.Context, resource schema.GroupVersionResource, body *unstructured.Unstructured, force bool,
) (*unstructured.Unstructured, error) {
	return c.api.Resource(resource).Namespace(body.GetNamespace()).
		Apply(ctx, body.GetName(), body, metav1.ApplyOptions{FieldManager: v0.FieldManagerController, Force: force})
}

// Delete deletes the object with that UID, and its dependents in the background. An
// object that no longer exists, or was replaced by another, is no error.
func (c *Client) Delete(ctx context.Context, resource schema.GroupVersionResource, name types.NamespacedName, uid types.UID) error {
	background := metav1.DeletePropagationBackground
	err := c.api.Resource(resource).Namespace(name.Namespace).Delete(ctx, name.Name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &uid},
		PropagationPolicy: &background,
	})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if apierrors.IsForbidden(err) {
		return c.forbidden(resource, err)
	}
	return deleteError(fmt.Sprintf("%s %s cannot be deleted", resource.GroupResource(), name), err)
}

// DeleteOwned deletes the object of that name if the claim owns it, whatever its
// UID.
func (c *Client) DeleteOwned(
	ctx context.Context, resource schema.GroupVersionResource, name types.NamespacedName, claim ownership.Claim,
) error {
	existing, err := c.api.Resource(resource).Namespace(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsForbidden(err):
		return c.forbidden(resource, err)
	case err != nil:
		return deleteError(fmt.Sprintf("%s %s cannot be read before its deletion", resource.GroupResource(), name), err)
	case !claim.Owns(ownership.Of(existing)):
		return nil
	}
	return c.Delete(ctx, resource, name, existing.GetUID())
}
