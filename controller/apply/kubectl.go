package apply

import (
	"bytes"
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/internal/jsonpatch"
)

// takeOver prepares the repair of an object that people have edited with kubectl: it makes
// the controller the manager of the entries that they have set in lists of the template, so
// that the next apply removes those which the template does not have. The patch changes
// nothing but managed fields.
//
// The key of an entry identifies it, so whoever changes the key, for example the port of a
// Service, has removed an entry and added another. Server-side apply alone would restore the
// first and keep the second.
//
// It returns the resourceVersion to apply over: an entry that is replaced after that would
// be restored, and its replacement kept.
func (c *Client) takeOver(ctx context.Context, step plan.Step) (version string, err error) {
	want := step.Desired
	var owned bool
	var managers []metav1.ManagedFieldsEntry
	var problem error
	err = c.read(ctx, want.Resource, step.Ref.NamespacedName(), func(live *unstructured.Unstructured) {
		version = live.GetResourceVersion()
		if owned = live.GetUID() == step.UID && step.Claim.Owns(ownership.Read(live)); owned {
			managers, problem = withoutKubectl(live.GetManagedFields(), want.Content)
		}
	})
	switch {
	case err != nil:
		return "", c.classify(want, err)
	case !owned:
		return "", ErrChanged
	case problem != nil || managers == nil:
		return version, problem
	}
	patch := jsonpatch.Patch{
		jsonpatch.Replace("/metadata/managedFields", managers),
		jsonpatch.Replace("/metadata/resourceVersion", version), // refused if it has changed
	}
	options := metav1.PatchOptions{FieldManager: v0.FieldManagerController}
	patched, err := c.api.Patch(ctx, want.Resource, step.Ref.NamespacedName(), types.JSONPatchType, patch.Encode(), options)
	if err != nil {
		return "", c.classify(want, redact(want.Resource, err))
	}
	err = patched.Read(func(object *unstructured.Unstructured) { version = object.GetResourceVersion() })
	return version, err
}

// withoutKubectl returns managed fields in which the controller has applied what kubectl has
// set in lists that content has too. What other appliers share stays theirs. It returns nil if
// kubectl has set nothing there.
func withoutKubectl(managers []metav1.ManagedFieldsEntry, content map[string]any) ([]metav1.ManagedFieldsEntry, error) {
	sets, taken := make([]*fieldpath.Set, len(managers)), &fieldpath.Set{}
	for i, entry := range managers {
		sets[i] = &fieldpath.Set{}
		if entry.FieldsV1 == nil {
			continue
		}
		if err := sets[i].FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())); err != nil {
			return nil, fmt.Errorf("read the managed fields of %s: %w", entry.Manager, err)
		}
		if ownership.IsEdit(entry) {
			taken = taken.Union(ownership.EntriesIn(content, sets[i]))
		}
	}
	if taken.Empty() {
		return nil, nil
	}
	var kept []metav1.ManagedFieldsEntry
	for i, entry := range managers {
		fields := sets[i]
		switch {
		case ownership.IsApplied(entry):
			fields = fields.Union(taken)
		case entry.Operation == metav1.ManagedFieldsOperationUpdate:
			fields = fields.RecursiveDifference(taken)
		}
		if fields.Empty() {
			continue
		}
		raw, err := fields.ToJSON()
		if err != nil {
			return nil, fmt.Errorf("write the managed fields of %s: %w", entry.Manager, err)
		}
		entry.FieldsV1 = metav1.NewFieldsV1(string(raw))
		kept = append(kept, entry)
	}
	return kept, nil
}
