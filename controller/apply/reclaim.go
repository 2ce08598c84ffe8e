package apply

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/internal/jsonpatch"
)

// reclaim prepares the repair of an object in which other clients have replaced list
// entries of the parent's: it makes the controller the only manager of the
// replacements ([plan.Reclaim]), so that the next apply removes them and restores
// the parent's entries in one write. The patch changes nothing but managed fields.
//
// It returns the resourceVersion to apply over: an entry that is replaced after that
// would be restored, and its replacement taken for an entry that was merely added.
func (c *Client) reclaim(ctx context.Context, step plan.Step) (version string, err error) {
	want := step.Desired
	var owned bool
	var patch jsonpatch.Patch
	var problem error
	err = c.read(ctx, want.Resource, step.Ref.NamespacedName(), func(live *unstructured.Unstructured) {
		version = live.GetResourceVersion()
		if owned = live.GetUID() == step.UID && step.Claim.Owns(ownership.Read(live)); !owned {
			return
		}
		var managers []metav1.ManagedFieldsEntry
		var replaced []string
		if managers, replaced, problem = plan.Reclaim(live, want.Content, step.Neighbors); len(replaced) > 0 {
			patch = jsonpatch.Patch{
				jsonpatch.Replace("/metadata/managedFields", managers),
				jsonpatch.Replace("/metadata/resourceVersion", version), // refused if it has changed
			}
		}
	})
	switch {
	case err != nil:
		return "", c.classify(want, err)
	case !owned:
		return "", ErrChanged
	case problem != nil || len(patch) == 0:
		return version, problem
	}
	options := metav1.PatchOptions{FieldManager: v0.FieldManagerController}
	patched, err := c.api.Patch(ctx, want.Resource, step.Ref.NamespacedName(), types.JSONPatchType, patch.Encode(), options)
	if err != nil {
		return "", c.classify(want, redact(want.Resource, err))
	}
	err = patched.Read(func(object *unstructured.Unstructured) { version = object.GetResourceVersion() })
	return version, err
}
