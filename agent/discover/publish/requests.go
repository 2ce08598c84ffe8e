package publish

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/agent/instances"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/jsonpatch"
)

// write carries out a step and returns the resulting Instance, or nil if it was
// deleted.
func (p *Publisher) write(ctx context.Context, step Step) (*v0.Instance, error) {
	switch step.Action {
	case Create:
		return p.create(ctx, step.Want)
	case Delete:
		return nil, p.delete(ctx, step.Have)
	}
	return p.patch(ctx, step.Have, step.Patch)
}

// create creates an Instance.
func (p *Publisher) create(ctx context.Context, want *v0.Instance) (*v0.Instance, error) {
	created := *want // the gate compares what is wanted, which has no time
	created.Spec.LastChangeTime = new(metav1.Now())
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&created)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(object.Object, "status")
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	answer, err := p.client.Namespace(want.Namespace).Create(ctx, object, metav1.CreateOptions{FieldManager: p.manager})
	if err != nil {
		return nil, err
	}
	return p.keep(answer)
}

// patch patches the Instance that was read. The patch tests what else must not have
// changed.
func (p *Publisher) patch(ctx context.Context, have *v0.Instance, patch jsonpatch.Patch) (*v0.Instance, error) {
	// By now, another Instance may have the same name.
	bound := append(jsonpatch.Patch{jsonpatch.Test(uidPath, have.UID)}, patch...)
	answer, err := p.client.Namespace(have.Namespace).
		Patch(ctx, have.Name, types.JSONPatchType, bound.Encode(), metav1.PatchOptions{FieldManager: p.manager})
	if err != nil {
		return nil, fmt.Errorf("patch Instance %s: %w", instances.NameOf(have), err)
	}
	return p.keep(answer)
}

// delete deletes an Instance if it has not changed since it was read. Otherwise it
// returns a conflict.
func (p *Publisher) delete(ctx context.Context, have *v0.Instance) error {
	err := p.client.Namespace(have.Namespace).Delete(ctx, have.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &have.UID, ResourceVersion: &have.ResourceVersion},
	})
	if err == nil || apierrors.IsNotFound(err) {
		p.instances.Forget(have)
		return nil
	}
	return err
}

// keep records the response to a write, so that later reads see it before the watch
// does.
func (p *Publisher) keep(answer *unstructured.Unstructured) (*v0.Instance, error) {
	instance, err := instances.Read(answer)
	if err != nil {
		return nil, err
	}
	p.instances.Keep(instance)
	return instance, nil
}
