package ownership

import (
	"bytes"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	v0 "akri.sh/akri/api/v0"
)

// maxLevels is the length of a path. Objects of templates have at most 100 levels
// (MaxDepth in templating/internal/budget). Users may nest thousands of levels in managed
// fields: all paths together would be too long.
const maxLevels = 100

// maxEntries is the length of a list in which [ValueAt] looks for an entry. Users choose how
// many paths lead to how many entries, and each is compared with each.
const maxEntries = 500

// IsEdit reports whether an entry of managed fields says what people have changed with kubectl,
// or a client that borrows the controller's name, other than by server-side apply.
func IsEdit(entry metav1.ManagedFieldsEntry) bool {
	byEditor := strings.HasPrefix(entry.Manager, "kubectl") || entry.Manager == v0.FieldManagerController
	return byEditor && entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == ""
}

// HasEntries reports whether a field manager has set list entries, without decoding its
// fields, which is slow.
func HasEntries(entry metav1.ManagedFieldsEntry) bool {
	if entry.FieldsV1 == nil {
		return false
	}
	raw := entry.FieldsV1.GetRawBytes()
	return bytes.Contains(raw, []byte(`"k:`)) || bytes.Contains(raw, []byte(`"v:`))
}

// EntriesIn returns those list entries outside the metadata in a set of fields whose lists
// an object has.
func EntriesIn(content map[string]any, fields *fieldpath.Set) *fieldpath.Set {
	entries := &fieldpath.Set{}
	fields.Iterate(func(path fieldpath.Path) {
		last := path[len(path)-1]
		inMetadata := path[0].FieldName != nil && *path[0].FieldName == "metadata"
		if last.Key == nil && last.Value == nil || inMetadata || len(path) > maxLevels {
			return
		}
		list, _ := ValueAt(content, path[:len(path)-1])
		if _, isList := list.([]any); isList {
			entries.Insert(path.Copy())
		}
	})
	return entries
}

// ValueAt returns the value at a path of an object.
func ValueAt(content map[string]any, path fieldpath.Path) (existing any, found bool) {
	existing, found = content, true
	for _, element := range path {
		switch node := existing.(type) {
		case map[string]any:
			if element.FieldName == nil {
				return nil, false
			}
			existing, found = node[*element.FieldName]
		case []any:
			existing, found = entryOf(node, element)
		default:
			return nil, false
		}
		if !found {
			return nil, false
		}
	}
	return existing, found
}

// entryOf returns the first entry of a list that an element of a path identifies, by its key
// or its value. A field of the key that an entry does not set is defaulted: it has any value.
func entryOf(list []any, element fieldpath.PathElement) (entry any, found bool) {
	for _, entry := range list[:min(len(list), maxEntries)] {
		switch {
		case element.Value != nil:
			found = value.Equals(value.NewValueInterface(entry), *element.Value)
		case element.Key != nil:
			fields, isMap := entry.(map[string]any)
			found = isMap
			for _, field := range *element.Key {
				own, set := fields[field.Name]
				found = found && (!set || value.Equals(value.NewValueInterface(own), field.Value))
			}
		}
		if found {
			return entry, true
		}
	}
	return nil, false
}
