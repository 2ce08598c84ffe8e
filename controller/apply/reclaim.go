package apply

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	live, err := c.get(ctx, want.Resource, step.Ref.NamespacedName())
	if err != nil {
		return "", c.classify(want.Kind, want.Resource, err)
	}
	if live.GetUID() != step.UID || !step.Claim.Owns(ownership.Read(live)) {
		return "", ErrChanged
	}
	managers, replaced, err := plan.Reclaim(live, want.Content, step.Neighbors)
	if err != nil || len(replaced) == 0 {
		return live.GetResourceVersion(), err
	}
	patch := jsonpatch.Patch{
		jsonpatch.Replace("/metadata/managedFields", managers),
		jsonpatch.Replace("/metadata/resourceVersion", live.GetResourceVersion()), // refused if it has changed
	}
	options := metav1.PatchOptions{FieldManager: v0.FieldManagerController}
	patched, err := c.api.Resource(want.Resource).Namespace(step.Ref.Namespace).
		Patch(ctx, step.Ref.Name, types.JSONPatchType, patch.Encode(), options)
	if err != nil {
		return "", c.classify(want.Kind, want.Resource, redact(want.Resource, err))
	}
	return patched.GetResourceVersion(), nil
}
