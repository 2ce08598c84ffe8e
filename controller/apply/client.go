package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	v0 "akri.sh/akri/api/v0"
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

// neverExisted is a resourceVersion that no object has: the API server's store
// begins to count at 1 and writes the first object as 2. An apply that carries
// it creates an object, since versions are compared with existing objects only,
// and is refused with 409 if there is one.
const neverExisted = "1"

// Owner says which existing object is ours: one whose controller owner is the
// parent, or that is labelled so, or the very one that was applied before. Of those that no controller
// owns, with Nobody those that we have applied are ours, with Anybody all.
type Owner struct {
	Parent          types.UID
	Applied         types.UID // empty if none was
	Nobody, Anybody bool
}

func (o Owner) owns(object *unstructured.Unstructured) bool {
	if object.GetUID() == o.Applied {
		return true // even if its owner reference was taken off
	}
	owner := metav1.GetControllerOfNoCopy(object)
	if label := object.GetLabels()[v0.LabelOwner]; owner == nil && label != "" {
		return types.UID(label) == o.Parent
	}
	if owner == nil {
		return o.Anybody || o.Nobody && slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
			return entry.Manager == v0.FieldManagerController
		})
	}
	return owner.UID == o.Parent
}

// Create applies an object that does not exist. If one exists all the same, it
// is updated if it is ours, and left untouched with a Conflict as error
// otherwise.
func (c *Client) Create(ctx context.Context, kind schema.GroupVersionKind, resource schema.GroupVersionResource, owner Owner, content map[string]any) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{Object: content}
	body := shallow(content)
	body.SetResourceVersion(neverExisted)
	created, err := c.apply(ctx, resource, body, false)
	if err == nil {
		return created, nil
	}
	if err := c.classify(kind, resource, err); !errors.Is(err, ErrChanged) {
		return nil, err
	}
	// It exists. Ours, if the watch is behind or a label was taken off it.
	existing, err := c.api.Resource(resource).Namespace(object.GetNamespace()).Get(ctx, object.GetName(), metav1.GetOptions{})
	if err != nil {
		return nil, c.classify(kind, resource, err)
	}
	if !owner.owns(existing) {
		return nil, Conflict(fmt.Sprintf("%s %s", kind.Kind, object.GetName()))
	}
	return c.Update(ctx, kind, resource, existing.GetUID(), content)
}

// Update applies over an object of ours. Fields that others have changed are
// taken back.
func (c *Client) Update(ctx context.Context, kind schema.GroupVersionKind, resource schema.GroupVersionResource, uid types.UID, content map[string]any) (*unstructured.Unstructured, error) {
	body := shallow(content)
	body.SetUID(uid)
	updated, err := c.apply(ctx, resource, body, true)
	if err != nil {
		return nil, c.classify(kind, resource, err)
	}
	return updated, nil
}

// shallow is a copy of an object whose metadata can be set without changing the
// original.
func shallow(content map[string]any) *unstructured.Unstructured {
	body := maps.Clone(content)
	if metadata, ok := body["metadata"].(map[string]any); ok {
		body["metadata"] = maps.Clone(metadata)
	}
	return &unstructured.Unstructured{Object: body}
}

func (c *Client) apply(ctx context.Context, resource schema.GroupVersionResource, body *unstructured.Unstructured, force bool) (*unstructured.Unstructured, error) {
	return c.api.Resource(resource).Namespace(body.GetNamespace()).
		Apply(ctx, body.GetName(), body, metav1.ApplyOptions{FieldManager: v0.FieldManagerController, Force: force})
}

// Delete removes the object with that UID, and in the background what it owns.
// An object that has gone already, or was replaced by another, is success.
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
	return &Error{Reason: v0.ReasonDeleteFailed, Cause: fmt.Sprintf("%s %s cannot be deleted: %s", resource.GroupResource(), name, serverSays(err)), Err: err}
}

// DeleteOwned removes the object of that name if it is the owner's, whatever its
// UID.
func (c *Client) DeleteOwned(ctx context.Context, resource schema.GroupVersionResource, name types.NamespacedName, owner Owner) error {
	existing, err := c.api.Resource(resource).Namespace(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsForbidden(err):
		return c.forbidden(resource, err)
	case err != nil:
		return &Error{Reason: v0.ReasonDeleteFailed, Cause: fmt.Sprintf("%s %s cannot be read before its deletion: %s", resource.GroupResource(), name, serverSays(err)), Err: err}
	case !owner.owns(existing):
		return nil
	}
	return c.Delete(ctx, resource, name, existing.GetUID())
}
