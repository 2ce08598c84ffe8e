package templating

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"akri.sh/akri/templating/internal/expr"
)

// Set is a compiled list of templates. It is immutable and safe for concurrent
// use. A nil *Set is an empty list.
type Set struct {
	level     Level
	templates []*template
	kinds     []schema.GroupVersionKind
	keys      []string
	// partly is set if objects that fail to render are wanted, too.
	partly bool
}

// template is one compiled template.
type template struct {
	origin     Origin
	metadata   []Path // see metadataPaths
	kind       schema.GroupVersionKind
	content    *mapNode
	when       *expr.Text // nil: always
	binds      binding
	directives Directives
}

// Level returns the level of the list that was compiled.
func (s *Set) Level() Level {
	if s == nil {
		return InstanceLevel
	}
	return s.level
}

// Len returns the number of templates.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return len(s.templates)
}

// Directives returns the directives of a template. The index must be less than Len.
func (s *Set) Directives(index int) Directives { return s.templates[index].directives }

// Kinds returns the kinds of all objects that the templates can create, sorted and
// without repetition. Values cannot add a kind.
func (s *Set) Kinds() []schema.GroupVersionKind {
	if s == nil {
		return nil
	}
	return slices.Clone(s.kinds)
}

// PropertyKeys returns the keys of device properties that the templates mention by
// name, sorted. It does not include keys that a template computes.
func (s *Set) PropertyKeys() []string {
	if s == nil {
		return nil
	}
	return slices.Clone(s.keys)
}

func kindsOf(templates []*template) []schema.GroupVersionKind {
	kinds := make([]schema.GroupVersionKind, len(templates))
	for i, t := range templates {
		kinds[i] = t.kind
	}
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(kinds)
}

// nameSource returns what the author wrote as metadata.name.
func (t *template) nameSource() string {
	switch name := literalChild(literalChild(t.content, "metadata"), "name").(type) {
	case *textNode:
		return name.text.Source()
	case literalNode:
		source, _ := name.value.(string)
		return source
	}
	return ""
}
