package plan

import (
	"bytes"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

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
	ours, applied := &fieldpath.Set{}, &fieldpath.Set{}
	for i, entry := range managers {
		switch {
		case i == own:
			ours = ownership.Fields(entry)
		case entry.Operation == metav1.ManagedFieldsOperationApply:
			applied = applied.Union(ownership.Fields(entry))
		}
	}
	lacking := incompleteLists(ours, content)
	remove := &fieldpath.Set{}
	for _, entry := range managers {
		for _, path := range ownership.AddedBy(entry) {
			// A client may have used another version of the kind, in which the list has another path.
			if !lacking(path[:len(path)-1]) || !hasEntry(live.Object, path) {
				continue
			}
			if !ours.Has(path) && !applied.Has(path) && !slices.Contains(neighbors, path.String()) {
				remove.Insert(path)
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
	for _, path := range ownership.Entries(ours) {
		list := path[:len(path)-1].String()
		owned[list] = append(owned[list], path[len(path)-1])
	}
	known := map[string]bool{}
	return func(path fieldpath.Path) bool {
		list := path.String()
		incomplete, found := known[list]
		if !found {
			desired, _ := EntriesAt(content, path)
			// Two entries may match one field, because a part of their key is defaulted.
			incomplete = len(owned[list]) < len(desired) || slices.ContainsFunc(desired, func(entry any) bool {
				return !slices.ContainsFunc(owned[list], func(own fieldpath.PathElement) bool { return isEntry(entry, own) })
			})
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

// EntriesAt returns the list at a path of an object.
func EntriesAt(content map[string]any, path fieldpath.Path) (list []any, found bool) {
	existing, _ := At(content, path)
	list, found = existing.([]any)
	return list, found
}

// At returns the value at a path of an object. Entries of lists that are sets are not
// found: the path has their value.
func At(content map[string]any, path fieldpath.Path) (existing any, found bool) {
	var current any = content
	for _, element := range path {
		switch node := current.(type) {
		case map[string]any:
			if element.FieldName == nil {
				return nil, false
			}
			if current, found = node[*element.FieldName]; !found {
				return nil, false
			}
		case []any:
			if element.Key == nil {
				return nil, false
			}
			index := slices.IndexFunc(node, func(entry any) bool { return isEntry(entry, element) })
			if index < 0 {
				return nil, false
			}
			current = node[index]
		default:
			return nil, false
		}
	}
	return current, true
}

// hasEntry reports whether an object has the list entry at a path.
func hasEntry(content map[string]any, path fieldpath.Path) bool {
	entries, _ := EntriesAt(content, path[:len(path)-1])
	return slices.ContainsFunc(entries, func(entry any) bool { return isEntry(entry, path[len(path)-1]) })
}

// isEntry reports whether an entry of a list is the one that the last element of a path
// identifies, by its key or its value. A field of the key that the entry does not set
// is defaulted.
func isEntry(entry any, element fieldpath.PathElement) bool {
	if element.Key == nil {
		return element.Value != nil && value.Equals(value.NewValueInterface(entry), *element.Value)
	}
	fields, ok := entry.(map[string]any)
	if !ok {
		return false
	}
	for _, field := range *element.Key {
		if set, found := fields[field.Name]; found && !value.Equals(value.NewValueInterface(set), field.Value) {
			return false
		}
	}
	return true
}
