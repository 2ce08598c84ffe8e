package ownership

import (
	"bytes"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	v0 "akri.sh/akri/api/v0"
)

// maxLevels is the length of a path. Objects of templates have at most 100 levels
// (MaxDepth in templating/internal/budget). Users may nest thousands of levels in managed
// fields: all paths together would be too long.
const maxLevels = 100

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
// an object has. Lists of the same fields, such as the variables of all containers, are one.
func EntriesIn(content map[string]any, fields *fieldpath.Set) *fieldpath.Set {
	lists, entries := map[string]bool{}, &fieldpath.Set{}
	addLists(lists, content, "")
	fields.Iterate(func(path fieldpath.Path) {
		if last := path[len(path)-1]; last.Key == nil && last.Value == nil || len(path) > maxLevels {
			return
		}
		var list strings.Builder
		for _, element := range path {
			if element.FieldName != nil {
				list.WriteString("." + *element.FieldName)
			}
		}
		if lists[list.String()] && !strings.HasPrefix(list.String(), ".metadata.") {
			entries.Insert(path.Copy())
		}
	})
	return entries
}

// addLists adds the lists in a value, by the names of the fields that lead to them.
func addLists(lists map[string]bool, value any, fields string) {
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			addLists(lists, field, fields+"."+name)
		}
	case []any:
		lists[fields] = true
		for _, entry := range value {
			addLists(lists, entry, fields)
		}
	}
}
