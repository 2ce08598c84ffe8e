package plan

import (
	"bytes"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/ownership"
)

// Reclaim finds the list entries that have replaced entries of the controller in an
// object that it applied, and returns managed fields with which the next apply
// removes them: the controller owns them, and nobody else. live is the object as read
// in the version of content, which is the rendered object.
//
// The key of an entry identifies it, so a client that changes the key, for example
// the port of a Service, has removed an entry and added another. Server-side apply
// would restore the first and keep the second. An entry is a replacement if
//
//   - the controller's fields lack an entry of its list that content has,
//   - a client has added it by an update ([ownership.Added]), and nobody applied it,
//   - it was not there, next to the controller's entries, when these were complete:
//     neighbors has the paths of those that were.
//
// replaced is empty if there is none; managed is then nil.
func Reclaim(
	live *unstructured.Unstructured, content map[string]any, neighbors []string,
) (managed []metav1.ManagedFieldsEntry, replaced []string, err error) {
	managers := live.GetManagedFields()
	own := slices.IndexFunc(managers, ownership.IsApplied)
	ours, applied := &fieldpath.Set{}, []*fieldpath.Set{}
	for i, entry := range managers {
		switch {
		case i == own:
			ours = ownership.Fields(entry)
		case entry.Operation == metav1.ManagedFieldsOperationApply:
			applied = append(applied, ownership.Fields(entry))
		}
	}
	appliedByOthers := ownership.Union(applied)
	isNeighbor := sets.New(neighbors...)
	lacking, existing := incompleteLists(ours, content), NewFinder(live.Object)
	remove := &fieldpath.Set{}
	for _, entry := range managers {
		for path := range ownership.AddedBy(entry) {
			// A client may have used another version of the kind, in which the list has another path.
			if _, found := existing.At(path); !found || !lacking(path[:len(path)-1]) {
				continue
			}
			if !ours.Has(path) && !appliedByOthers.Has(path) && !isNeighbor.Has(path.String()) {
				remove.Insert(path.Copy())
			}
		}
	}
	if remove.Empty() {
		return nil, nil, nil
	}
	for path := range remove.All() {
		replaced = append(replaced, path.String())
	}
	version, _ := content["apiVersion"].(string)
	managed, err = reassigned(managers, remove, version)
	return managed, replaced, err
}

// incompleteLists returns a function that reports whether content has a list at a path
// with an entry that is not among the controller's fields. The fields may have others
// instead: those of a former template.
func incompleteLists(ours *fieldpath.Set, content map[string]any) func(list fieldpath.Path) bool {
	owned := map[string][]fieldpath.PathElement{} // by list
	for path := range ownership.Entries(ours) {
		list := path[:len(path)-1].String()
		owned[list] = append(owned[list], path[len(path)-1])
	}
	wanted := NewFinder(content)
	known := map[string]bool{}
	return func(path fieldpath.Path) bool {
		list := path.String()
		incomplete, found := known[list]
		if !found {
			desired, _ := wanted.EntriesAt(path)
			// Two entries may match one field, because a part of their key is defaulted.
			incomplete = len(owned[list]) < len(desired) || !wanted.allIn(desired, owned[list])
			known[list] = incomplete
		}
		return incomplete
	}
}

// reassigned returns managed fields in which the controller has applied the list
// entries, and no other manager owns them or anything in them.
func reassigned(managers []metav1.ManagedFieldsEntry, entries *fieldpath.Set, version string) ([]metav1.ManagedFieldsEntry, error) {
	var managed []metav1.ManagedFieldsEntry
	if !slices.ContainsFunc(managers, ownership.IsApplied) {
		managers = append(slices.Clone(managers), metav1.ManagedFieldsEntry{
			Manager: v0.FieldManagerController, Operation: metav1.ManagedFieldsOperationApply, APIVersion: version,
			FieldsType: "FieldsV1",
		})
	}
	for _, entry := range managers {
		before, err := fieldsOf(entry)
		if err != nil {
			return nil, err
		}
		fields := before.RecursiveDifference(entries)
		if ownership.IsApplied(entry) {
			fields = fields.Union(entries)
		}
		if fields.Equals(before) {
			managed = append(managed, entry)
			continue
		}
		if fields.Empty() {
			continue
		}
		raw, err := fields.ToJSON()
		if err != nil {
			return nil, fmt.Errorf("write the managed fields of %s: %w", entry.Manager, err)
		}
		entry.FieldsV1 = metav1.NewFieldsV1(string(raw))
		managed = append(managed, entry)
	}
	return managed, nil
}

func fieldsOf(entry metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	fields := &fieldpath.Set{}
	if entry.FieldsV1 == nil {
		return fields, nil
	}
	if err := fields.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())); err != nil {
		return nil, fmt.Errorf("read the managed fields of %s: %w", entry.Manager, err)
	}
	return fields, nil
}
