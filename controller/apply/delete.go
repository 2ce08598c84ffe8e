package apply

import (
	"context"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/ownership"
)

// maxTries bounds how often an object is read that keeps changing between the read and the
// request.
const maxTries = 3

// edit reads an object, and sends the request that decide returns for it, which names the
// version that was read. If the object has changed in between, it is read again. done is
// false if there is no request; an object that no longer exists needs none.
func (c *Client) edit(
	ctx context.Context, resource schema.GroupVersionResource, name types.NamespacedName,
	decide func(*unstructured.Unstructured) (request func() error),
) (done bool, err error) {
	for try := 1; ; try++ {
		var request func() error
		err = c.read(ctx, resource, name, func(existing *unstructured.Unstructured) { request = decide(existing) })
		if err == nil && request == nil {
			return false, nil
		}
		if err == nil {
			err = request()
		}
		switch {
		case err == nil, apierrors.IsNotFound(err):
			return true, nil
		case !apierrors.IsConflict(err) || try == maxTries:
			return false, err
		}
	}
}

// patch changes the metadata of an object in the version in which it was read.
func (c *Client) patch(
	ctx context.Context, resource schema.GroupVersionResource, read *unstructured.Unstructured, metadata map[string]any,
) (request func() error) {
	name := types.NamespacedName{Namespace: read.GetNamespace(), Name: read.GetName()}
	metadata["resourceVersion"] = read.GetResourceVersion()
	return func() error {
		body, err := json.Marshal(map[string]any{"metadata": metadata})
		if err != nil {
			return err
		}
		_, err = c.api.Patch(ctx, resource, name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: v0.FieldManagerController})
		return redact(resource, err)
	}
}

// Delete deletes an object in the version in which it was judged, and its
// dependents in the background. An object that no longer exists is no error. If it
// has changed or was replaced, it is left alone, and the error is [ErrChanged].
func (c *Client) Delete(
	ctx context.Context, resource schema.GroupVersionResource, name types.NamespacedName, uid types.UID, resourceVersion string,
) error {
	err := c.delete(ctx, resource, name, uid, resourceVersion)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return c.removalError(resource, name, "deleted", err)
}

func (c *Client) delete(
	ctx context.Context, resource schema.GroupVersionResource, name types.NamespacedName, uid types.UID, resourceVersion string,
) error {
	background := metav1.DeletePropagationBackground
	return redact(resource, c.api.Delete(ctx, resource, name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &uid, ResourceVersion: &resourceVersion},
		PropagationPolicy: &background,
	}))
}

// DeleteIf reads the object of that name and deletes it if may accepts its state,
// whatever its UID. deleted is false if the object was left alone; an object that
// no longer exists counts as deleted.
func (c *Client) DeleteIf(
	ctx context.Context, resource schema.GroupVersionResource, name types.NamespacedName, may func(ownership.State) bool,
) (deleted bool, err error) {
	deleted, err = c.edit(ctx, resource, name, func(existing *unstructured.Unstructured) func() error {
		state, version := ownership.Read(existing), existing.GetResourceVersion()
		switch {
		case !may(state):
			return nil
		case state.Terminating:
			return func() error { return nil }
		}
		return func() error { return c.delete(ctx, resource, name, state.UID, version) }
	})
	return deleted, c.removalError(resource, name, "deleted", err)
}

// DisownIf reads the object of that name and removes the label with its owner if may
// accepts its state. An object that no longer exists is no error.
func (c *Client) DisownIf(
	ctx context.Context, resource schema.GroupVersionResource, name types.NamespacedName, may func(ownership.State) bool,
) error {
	_, err := c.edit(ctx, resource, name, func(existing *unstructured.Unstructured) func() error {
		if !may(ownership.Read(existing)) {
			return nil
		}
		return c.patch(ctx, resource, existing, map[string]any{"labels": map[string]any{v0.LabelOwner: nil}})
	})
	return c.removalError(resource, name, "released", err)
}
