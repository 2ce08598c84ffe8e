package apply

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/ownership"
)

// ApplyStatus applies the controller's part of a parent's status. Like every
// method here it does nothing if the parent no longer exists.
func (c *Client) ApplyStatus(ctx context.Context, parent ownership.Parent, status map[string]any) error {
	if err := c.applyParent(ctx, parent, nil, status, "status"); err != nil {
		return fmt.Errorf("write the status of %s: %w", parent, err)
	}
	return nil
}

// PatchStatus replaces the lists in an Instance's status, which has no other
// writer. A patch costs the API server less than an apply, and every device has an
// Instance.
func (c *Client) PatchStatus(
	ctx context.Context, parent ownership.Parent, conditions []metav1.Condition, resources []v0.ResourceStatus,
) error {
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": parent.UID},
		"status":   map[string]any{"conditions": conditions, "resources": resources},
	})
	if err != nil {
		return fmt.Errorf("write the status of %s: %w", parent, err)
	}
	_, err = c.api.Resource(parent.Resource()).Namespace(parent.Namespace).
		Patch(ctx, parent.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: v0.FieldManagerController}, "status")
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || isOtherUID(err) {
		return nil
	}
	return fmt.Errorf("write the status of %s: %w", parent, err)
}

// Finalize adds the controller's finalizer to a parent.
func (c *Client) Finalize(ctx context.Context, parent ownership.Parent) error {
	if err := c.applyParent(ctx, parent, []any{v0.FinalizerElsewhere}, nil); err != nil {
		return fmt.Errorf("add finalizer %s to %s: %w", v0.FinalizerElsewhere, parent, err)
	}
	return nil
}

// Unfinalize removes the controller's finalizer from a parent.
func (c *Client) Unfinalize(ctx context.Context, parent ownership.Parent) error {
	if err := c.applyParent(ctx, parent, nil, nil); err != nil {
		return fmt.Errorf("remove finalizer %s from %s: %w", v0.FinalizerElsewhere, parent, err)
	}
	return nil
}

func (c *Client) applyParent(
	ctx context.Context, parent ownership.Parent, finalizers []any, status map[string]any, subresources ...string,
) error {
	metadata := map[string]any{"name": parent.Name, "namespace": parent.Namespace, "uid": string(parent.UID)}
	if finalizers != nil {
		metadata["finalizers"] = finalizers
	}
	body := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": parent.Kind().GroupVersion().String(),
		"kind":       parent.Kind().Kind,
		"metadata":   metadata,
	}}
	if status != nil {
		body.Object["status"] = status
	}
	_, err := c.api.Resource(parent.Resource()).Namespace(parent.Namespace).
		Apply(ctx, parent.Name, body, metav1.ApplyOptions{FieldManager: v0.FieldManagerController, Force: true}, subresources...)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
