package plan

import (
	"encoding/json"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Users choose how many entries a list has, how many paths lead to it, and how their keys
// look. Lists of Kubernetes have one set of key fields, and seldom more than two fields.
// What is beyond these numbers is not found.
const (
	maxShapes  = 4  // sets of key fields for which a list is indexed
	maxSubsets = 16 // subsets of them that the entries of a list set
)

// Finder finds values in an object by their paths. It reads each list once, however many
// paths lead to its entries. It is not safe for concurrent use, and the object must not
// change.
type Finder struct {
	content map[string]any
	lists   map[*any]*listIndex // by their first entries
}

// NewFinder returns a Finder for an object.
func NewFinder(content map[string]any) *Finder {
	return &Finder{content: content, lists: map[*any]*listIndex{}}
}

// At returns the value at a path of the object. Of several entries that an element of the
// path identifies, the first one counts.
func (f *Finder) At(path fieldpath.Path) (existing any, found bool) {
	var current any = f.content
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
			first := -1
			for _, identified := range f.index(node).find(element) {
				if first < 0 || identified.entries[0] < first {
					first = identified.entries[0]
				}
			}
			if first < 0 {
				return nil, false
			}
			current = node[first]
		default:
			return nil, false
		}
	}
	return current, true
}

// EntriesAt returns the list at a path of the object.
func (f *Finder) EntriesAt(path fieldpath.Path) (list []any, found bool) {
	existing, _ := f.At(path)
	list, found = existing.([]any)
	return list, found
}

// allIn reports whether the elements of paths identify all entries of a list of the object.
func (f *Finder) allIn(list []any, elements []fieldpath.PathElement) bool {
	identified := make([]bool, len(list))
	seen := map[*group]bool{}
	for _, element := range elements {
		for _, found := range f.index(list).find(element) {
			if seen[found] {
				continue
			}
			seen[found] = true
			for _, entry := range found.entries {
				identified[entry] = true
			}
		}
	}
	return !slices.Contains(identified, false)
}

// index returns the index of a list of the object.
func (f *Finder) index(list []any) *listIndex {
	if len(list) == 0 {
		return &listIndex{}
	}
	known, found := f.lists[&list[0]]
	if !found {
		known = &listIndex{list: list, shapes: map[string]*shape{}}
		f.lists[&list[0]] = known
	}
	return known
}

// listIndex finds entries of a list.
type listIndex struct {
	list   []any
	values map[string]*group // by the entry as JSON; nil until it is needed
	shapes map[string]*shape // by the names of key fields
}

// group has the positions of the entries of a list that the same path elements identify.
type group struct{ entries []int }

// shape finds entries by one set of key fields.
type shape struct {
	subsets []string          // what entries set of the fields: "10" is the first of two
	groups  map[string]*group // by such a subset and its values
}

// find returns the entries that the last element of a path identifies, by their key or
// their value. A field of the key that an entry does not set is defaulted: it has any
// value.
func (x *listIndex) find(element fieldpath.PathElement) []*group {
	switch {
	case len(x.list) == 0:
	case element.Value != nil:
		if found := x.byValue()[asJSON((*element.Value).Unstructured())]; found != nil {
			return []*group{found}
		}
	case element.Key != nil:
		key := *element.Key
		by := x.shape(key)
		if by == nil {
			return nil
		}
		values := make([]any, len(key))
		for at, field := range key {
			values[at] = field.Value.Unstructured()
		}
		var groups []*group
		for _, subset := range by.subsets {
			if found := by.groups[keyText(subset, values)]; found != nil {
				groups = append(groups, found)
			}
		}
		return groups
	}
	return nil
}

// byValue returns the entries by their values.
func (x *listIndex) byValue() map[string]*group {
	if x.values == nil {
		x.values = map[string]*group{}
		for i, entry := range x.list {
			add(x.values, asJSON(entry), i)
		}
	}
	return x.values
}

// shape returns the index of the list by the fields of a key, or nil if there are too many
// others.
func (x *listIndex) shape(key value.FieldList) *shape {
	names := make([]any, len(key))
	for at, field := range key {
		names[at] = field.Name
	}
	text := asJSON(names)
	known, found := x.shapes[text]
	if !found && len(x.shapes) < maxShapes {
		known = newShape(x.list, key)
		x.shapes[text] = known
	}
	return known
}

func newShape(list []any, key value.FieldList) *shape {
	made := &shape{groups: map[string]*group{}}
	values, subset := make([]any, len(key)), make([]byte, len(key))
	for i, entry := range list {
		fields, ok := entry.(map[string]any)
		if !ok {
			continue
		}
		for at, field := range key {
			var set bool
			if values[at], set = fields[field.Name]; set {
				subset[at] = '1'
			} else {
				subset[at] = '0'
			}
		}
		if !slices.Contains(made.subsets, string(subset)) {
			if len(made.subsets) == maxSubsets {
				continue
			}
			made.subsets = append(made.subsets, string(subset))
		}
		add(made.groups, keyText(string(subset), values), i)
	}
	return made
}

func add(groups map[string]*group, key string, entry int) {
	if groups[key] == nil {
		groups[key] = &group{}
	}
	groups[key].entries = append(groups[key].entries, entry)
}

// keyText returns the values of a subset of key fields as text.
func keyText(subset string, values []any) string {
	var text strings.Builder
	text.WriteString(subset)
	for at, set := range subset {
		if set == '1' {
			text.WriteString(asJSON(values[at]))
			text.WriteByte(',')
		}
	}
	return text.String()
}

// asJSON returns a value as JSON, which is the same for 1 and 1.0.
func asJSON(content any) string {
	text, err := json.Marshal(content)
	if err != nil {
		return "" // not of an object that was read as JSON
	}
	return string(text)
}
