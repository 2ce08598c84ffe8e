package publish

import (
	"context"
	"fmt"
	"strconv"
	"strings"

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
	created := *want // rejections compare what is wanted, which has no time
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
	client := p.client.Namespace(have.Namespace)
	answer, err := client.Patch(ctx, have.Name, types.JSONPatchType, bound.Encode(), metav1.PatchOptions{FieldManager: p.manager})
	if err != nil {
		return nil, fmt.Errorf("patch Instance %s: %w", instances.NameOf(have), err)
	}
	if former := p.formerManager(answer); len(former) > 0 {
		bound = append(jsonpatch.Patch{jsonpatch.Test(uidPath, have.UID)}, former...)
		cleaned, err := client.Patch(ctx, have.Name, types.JSONPatchType, bound.Encode(), metav1.PatchOptions{FieldManager: p.manager})
		if err == nil {
			answer = cleaned
		} else { // it costs some bytes only, until the next patch
			p.log.Debug("Cannot remove the former field manager", "instance", instances.NameOf(have), "err", err)
		}
	}
	return p.keep(answer)
}

// formerManager returns the operations that remove the field manager with which an
// earlier version of this node's agent applied the Instance.
func (p *Publisher) formerManager(object *unstructured.Unstructured) jsonpatch.Patch {
	list, _, _ := unstructured.NestedFieldNoCopy(object.Object, "metadata", "managedFields")
	entries, _ := list.([]any)
	for i, entry := range entries {
		fields, _ := entry.(map[string]any)
		manager, _ := fields["manager"].(string)
		if fields["operation"] == string(metav1.ManagedFieldsOperationApply) && strings.HasPrefix(manager, v0.FieldManagerAgent) &&
			manager == v0.FieldManagerOfNode(p.node) {
			path := jsonpatch.Pointer("metadata", "managedFields", strconv.Itoa(i))
			return jsonpatch.Patch{jsonpatch.Test(path+"/manager", manager), jsonpatch.Remove(path)}
		}
	}
	return nil
}

// delete deletes an Instance if it has not changed since it was read. Otherwise it
// returns a conflict.
func (p *Publisher) delete(ctx context.Context, have *v0.Instance) error {
	err := p.client.Namespace(have.Namespace).Delete(ctx, have.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &have.UID, ResourceVersion: &have.ResourceVersion},
	})
	if err == nil {
		p.log.Info("Deleted the Instance", "instance", instances.NameOf(have))
	}
	if err == nil || apierrors.IsNotFound(err) {
		p.instances.Forget(have)
		return nil
	}
	return err
}

// get returns an Instance from the API server, or nil.
func (p *Publisher) get(ctx context.Context, key types.NamespacedName) (*v0.Instance, error) {
	object, err := p.client.Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Instance %s: %w", key, err)
	}
	return instances.Read(object)
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
