package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/ownership"
)

// maxDeleteTries bounds how often [Client.DeleteIf] and [Client.DisownIf] read an object
// that keeps changing between the read and the request.
const maxDeleteTries = 3

// Delete deletes an object in the version in which it was judged, and its
// dependents in the background. An object that no longer exists is no error. If it
// has changed or was replaced, it is left alone, and the error is [ErrChanged].
func (c *Client) Delete(
	ctx context.Context, resource schema.GroupVersionResource, name types.NamespacedName, uid types.UID, resourceVersion string,
) error {
	background := metav1.DeletePropagationBackground
	err := redact(resource, c.api.Delete(ctx, resource, name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &uid, ResourceVersion: &resourceVersion},
		PropagationPolicy: &background,
	}))
	switch {
	case err == nil, apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		return fmt.Errorf("%w: %s", ErrChanged, serverSays(err))
	}
	return c.deleteError(resource, name, "deleted", err)
}

// DeleteIf reads the object of that name and deletes it if may accepts its state,
// whatever its UID. deleted is false if the object was left alone; an object that
// no longer exists counts as deleted.
func (c *Client) DeleteIf(
	ctx context.Context, resource schema.GroupVersionResource, name types.NamespacedName, may func(ownership.State) bool,
) (deleted bool, err error) {
	for try := 1; ; try++ {
		state, version, err := c.readState(ctx, resource, name)
		switch {
		case apierrors.IsNotFound(err):
			return true, nil
		case err != nil:
			return false, err
		case !may(state):
			return false, nil
		case state.Terminating:
			return true, nil
		}
		err = c.Delete(ctx, resource, name, state.UID, version)
		if !errors.Is(err, ErrChanged) || try == maxDeleteTries {
			return err == nil, err
		}
	}
}

// DisownIf reads the object of that name and removes the label with its owner if may
// accepts its state. An object that no longer exists is no error.
func (c *Client) DisownIf(
	ctx context.Context, resource schema.GroupVersionResource, name types.NamespacedName, may func(ownership.State) bool,
) error {
	for try := 1; ; try++ {
		state, version, err := c.readState(ctx, resource, name)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil || !may(state) {
			return err
		}
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"resourceVersion": version, "labels": map[string]any{v0.LabelOwner: nil}},
		})
		if err != nil {
			return fmt.Errorf("release %s %s: %w", resource.GroupResource(), name, err)
		}
		_, err = c.api.Patch(ctx, resource, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: v0.FieldManagerController})
		switch {
		case err == nil, apierrors.IsNotFound(err):
			return nil
		case !apierrors.IsConflict(err) || try == maxDeleteTries:
			return c.deleteError(resource, name, "released", redact(resource, err))
		}
	}
}

// readState returns what the object of that name says about its owner, and its
// resourceVersion. The error is a NotFound if there is none.
func (c *Client) readState(
	ctx context.Context, resource schema.GroupVersionResource, name types.NamespacedName,
) (state ownership.State, version string, err error) {
	err = c.read(ctx, resource, name, func(existing *unstructured.Unstructured) {
		state, version = ownership.Read(existing), existing.GetResourceVersion()
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return state, "", c.deleteError(resource, name, "read before it is deleted or released", err)
	}
	return state, version, err
}
