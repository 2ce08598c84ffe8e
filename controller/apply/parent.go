package apply

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
)

// Parent is a Configuration or an Instance. A parent that has gone is success in
// all that is done to it.
type Parent struct {
	Kind     schema.GroupVersionKind
	Resource schema.GroupVersionResource
	types.NamespacedName
	UID types.UID
}

// Status applies the controller's part of a parent's status.
func (c *Client) Status(ctx context.Context, parent Parent, status map[string]any) error {
	if err := c.applyParent(ctx, parent, nil, status, "status"); err != nil {
		return fmt.Errorf("write the status of %s %s: %w", parent.Kind.Kind, parent.NamespacedName, err)
	}
	return nil
}

// Replace writes the lists of an Instance's status, which nobody else writes. It
// costs the API server less than an apply, and there is one for each device.
func (c *Client) Replace(ctx context.Context, parent Parent, conditions []metav1.Condition, resources []v0.ResourceStatus) error {
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": parent.UID},
		"status":   map[string]any{"conditions": conditions, "resources": resources},
	})
	if err != nil {
		return fmt.Errorf("write the status of %s %s: %w", parent.Kind.Kind, parent.NamespacedName, err)
	}
	_, err = c.api.Resource(parent.Resource).Namespace(parent.Namespace).
		Patch(ctx, parent.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: v0.FieldManagerController}, "status")
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || isOtherUID(err) {
		return nil
	}
	return fmt.Errorf("write the status of %s %s: %w", parent.Kind.Kind, parent.NamespacedName, err)
}

// Finalize puts our finalizer on a parent.
func (c *Client) Finalize(ctx context.Context, parent Parent) error {
	if err := c.applyParent(ctx, parent, []any{v0.FinalizerElsewhere}, nil); err != nil {
		return fmt.Errorf("put the finalizer %s on %s %s: %w", v0.FinalizerElsewhere, parent.Kind.Kind, parent.NamespacedName, err)
	}
	return nil
}

// Unfinalize takes our finalizer off a parent.
func (c *Client) Unfinalize(ctx context.Context, parent Parent) error {
	if err := c.applyParent(ctx, parent, nil, nil); err != nil {
		return fmt.Errorf("take the finalizer %s off %s %s: %w", v0.FinalizerElsewhere, parent.Kind.Kind, parent.NamespacedName, err)
	}
	return nil
}

func (c *Client) applyParent(ctx context.Context, parent Parent, finalizers []any, status map[string]any, subresources ...string) error {
	metadata := map[string]any{"name": parent.Name, "namespace": parent.Namespace, "uid": string(parent.UID)}
	if finalizers != nil {
		metadata["finalizers"] = finalizers
	}
	body := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": parent.Kind.GroupVersion().String(),
		"kind":       parent.Kind.Kind,
		"metadata":   metadata,
	}}
	if status != nil {
		body.Object["status"] = status
	}
	_, err := c.api.Resource(parent.Resource).Namespace(parent.Namespace).
		Apply(ctx, parent.Name, body, metav1.ApplyOptions{FieldManager: v0.FieldManagerController, Force: true}, subresources...)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
