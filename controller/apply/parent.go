package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/objects"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/internal/jsonpatch"
)

// PatchStatus replaces the given fields of a parent's status and returns the parent's
// new resourceVersion. Like every method here it does nothing if the parent no longer
// exists; the version is then empty. A patch costs the API server less than an apply,
// and needs only what has changed.
func (c *Client) PatchStatus(ctx context.Context, parent ownership.Parent, fields map[string]any) (version string, err error) {
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": parent.UID},
		"status":   fields,
	})
	if err != nil {
		return "", fmt.Errorf("write the status of %s: %w", parent, err)
	}
	answer, err := c.api.Patch(ctx, parent.Resource(), parent.NamespacedName, types.MergePatchType, body,
		metav1.PatchOptions{FieldManager: v0.FieldManagerController}, "status")
	switch {
	case err == nil:
		err = answer.Read(func(object *unstructured.Unstructured) { version = object.GetResourceVersion() })
		return version, err
	case apierrors.IsNotFound(err), apierrors.IsConflict(err), isOtherUID(err):
		return "", nil
	}
	return "", fmt.Errorf("write the status of %s: %w", parent, err)
}

// Deleting reports whether a parent is being deleted or no longer exists. It asks the API
// server: caches may be late.
func (c *Client) Deleting(ctx context.Context, parent ownership.Parent) (bool, error) {
	deleting := false
	err := c.read(ctx, parent.Resource(), parent.NamespacedName, func(object *unstructured.Unstructured) {
		deleting = object.GetUID() != parent.UID || object.GetDeletionTimestamp() != nil
	})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", parent, err)
	}
	return deleting, nil
}

// ErrGone means that a parent no longer exists. Nothing must be created for it.
var ErrGone = errors.New("the parent no longer exists")

// Finalize adds the controller's finalizer to a parent, and records the
// ServiceAccount that acts for it: an Instance outlives the Configuration that names
// the account. The error is [ErrGone] if the parent no longer exists.
func (c *Client) Finalize(ctx context.Context, parent ownership.Parent, account types.NamespacedName) error {
	metadata := map[string]any{"finalizers": []any{v0.FinalizerCleanup}}
	if account.Name != "" {
		metadata["annotations"] = map[string]any{v0.AnnotationServiceAccount: account.Name}
	}
	_, err := c.applyParent(ctx, parent, metadata)
	if slices.ContainsFunc(invalidCauses(err), func(cause metav1.StatusCause) bool { return cause.Field == "metadata.finalizers" }) {
		err = ErrGone // it is being deleted: no finalizer can be added any more
	}
	if err != nil {
		return fmt.Errorf("add finalizer %s to %s: %w", v0.FinalizerCleanup, parent, err)
	}
	return nil
}

// maxUnfinalizeTries bounds how often [Client.Unfinalize] reads a parent that keeps
// changing between the read and the patch.
const maxUnfinalizeTries = 3

// Unfinalize removes the controller's finalizer from a parent, and the ServiceAccount that
// is recorded with it. An apply without them would remove all finalizers that no field
// manager has, and with them that of garbage collection, which is to orphan the objects
// of the parent or to delete them first.
func (c *Client) Unfinalize(ctx context.Context, parent ownership.Parent) error {
	for try := 1; ; try++ {
		var patch jsonpatch.Patch
		err := c.read(ctx, parent.Resource(), parent.NamespacedName, func(object *unstructured.Unstructured) {
			patch = unfinalizing(parent, object)
		})
		if err == nil && patch != nil {
			_, err = c.api.Patch(ctx, parent.Resource(), parent.NamespacedName, types.JSONPatchType, patch.Encode(),
				metav1.PatchOptions{FieldManager: v0.FieldManagerController})
		}
		switch {
		case err == nil, apierrors.IsNotFound(err):
			return nil
		case !apierrors.IsInvalid(err) || try == maxUnfinalizeTries: // a test of the patch has failed
			return fmt.Errorf("remove finalizer %s from %s: %w", v0.FinalizerCleanup, parent, err)
		}
	}
}

// unfinalizing returns the patch that removes the controller's finalizer from a parent as it
// was read; nil if it has none, or if another object has its name.
func unfinalizing(parent ownership.Parent, object *unstructured.Unstructured) jsonpatch.Patch {
	index := slices.Index(object.GetFinalizers(), v0.FinalizerCleanup)
	if index < 0 || object.GetUID() != parent.UID {
		return nil
	}
	finalizer := jsonpatch.Pointer("metadata", "finalizers", strconv.Itoa(index))
	patch := jsonpatch.Patch{
		jsonpatch.Test(jsonpatch.Pointer("metadata", "uid"), parent.UID),
		jsonpatch.Test(finalizer, v0.FinalizerCleanup),
		jsonpatch.Remove(finalizer),
	}
	if _, found := object.GetAnnotations()[v0.AnnotationServiceAccount]; found {
		patch = append(patch, jsonpatch.Remove(jsonpatch.Pointer("metadata", "annotations", v0.AnnotationServiceAccount)))
	}
	return patch
}

// applyParent applies metadata of a parent, and returns the answer. The error is
// [ErrGone] if the parent no longer exists.
func (c *Client) applyParent(
	ctx context.Context, parent ownership.Parent, metadata map[string]any,
) (objects.Answer, error) {
	body := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": parent.Kind().GroupVersion().String(),
		"kind":       parent.Kind().Kind,
		"metadata":   map[string]any{},
	}}
	maps.Copy(body.Object["metadata"].(map[string]any), metadata)
	body.SetName(parent.Name)
	body.SetNamespace(parent.Namespace)
	body.SetUID(parent.UID)
	answer, err := c.api.Apply(ctx, parent.Resource(), parent.NamespacedName, body.Object,
		metav1.ApplyOptions{FieldManager: v0.FieldManagerController, Force: true})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) || isOtherUID(err) {
		return nil, ErrGone
	}
	return answer, err
}
