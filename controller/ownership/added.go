package ownership

import (
	"bytes"
	"iter"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// managerBeforeApply is the field manager that the API server makes up for the
// fields of an object that had no managers. Nobody knows who set them.
const managerBeforeApply = "before-first-apply"

// maxAddedBytes is the length of all paths that [Added] returns. Caches keep them for each
// object, and users who may change an object choose how many there are.
const maxAddedBytes = 4 << 10

// maxLevels is the length of a path. Objects of templates have at most 100 levels
// (MaxDepth in templating/internal/budget). Users may nest thousands of levels in managed
// fields: all paths together would be too long.
const maxLevels = 100

// Added returns the paths of the list entries that clients have added to an object
// by updates, sorted. Entries that were applied are not among them, because
// server-side apply lets several appliers share a list. Neither are those without a
// manager, which admission or defaulting has added. If the paths have more than
// maxAddedBytes, there are none.
func Added(object metav1.Object) []string {
	var added []string
	size := 0
	for _, entry := range object.GetManagedFields() {
		for path := range AddedBy(entry) {
			added = append(added, path.String())
			if size += len(added[len(added)-1]); size > maxAddedBytes {
				return nil
			}
		}
	}
	slices.Sort(added)
	return slices.Compact(added)
}

// AddedBy returns the list entries that a field manager has added by updates, as in
// [Added]. The lists of the metadata, such as finalizers, are shared by design and
// left out. The paths are valid until the next one.
func AddedBy(entry metav1.ManagedFieldsEntry) iter.Seq[fieldpath.Path] {
	if entry.Operation != metav1.ManagedFieldsOperationUpdate || entry.Subresource != "" || entry.Manager == managerBeforeApply {
		return func(func(fieldpath.Path) bool) {}
	}
	return Entries(Fields(entry))
}

// Entries returns the list entries outside the metadata in a set of fields. The paths are
// valid until the next one: users choose how long they are.
func Entries(fields *fieldpath.Set) iter.Seq[fieldpath.Path] {
	return func(yield func(fieldpath.Path) bool) {
		stopped := false
		fields.Iterate(func(path fieldpath.Path) { // which cannot be stopped
			last := path[len(path)-1]
			inMetadata := path[0].FieldName != nil && *path[0].FieldName == "metadata"
			if !stopped && (last.Key != nil || last.Value != nil) && !inMetadata && len(path) <= maxLevels {
				stopped = !yield(path)
			}
		})
	}
}

// Union returns the fields of all sets. To add one after the other to a growing set would
// take time that is quadratic in their number, which users choose.
func Union(each []*fieldpath.Set) *fieldpath.Set {
	switch len(each) {
	case 0:
		return &fieldpath.Set{}
	case 1:
		return each[0]
	}
	middle := len(each) / 2
	return Union(each[:middle]).Union(Union(each[middle:]))
}

// Fields returns the fields of a manager. The set is empty if it contains no list
// entry: most do not, and decoding is slow.
func Fields(entry metav1.ManagedFieldsEntry) *fieldpath.Set {
	fields := &fieldpath.Set{}
	if entry.FieldsV1 == nil {
		return fields
	}
	raw := entry.FieldsV1.GetRawBytes()
	if !bytes.Contains(raw, []byte(`"k:`)) && !bytes.Contains(raw, []byte(`"v:`)) {
		return fields
	}
	if err := fields.FromJSON(bytes.NewReader(raw)); err != nil {
		return &fieldpath.Set{} // of a future format
	}
	return fields
}
