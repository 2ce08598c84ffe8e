package templating

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxDiagnostics is how many diagnostics one template may cause. More would not
// be read.
const maxDiagnostics = 50

// Compile checks a list of templates and prepares it for rendering. It reports
// everything that is wrong at once; then the Set is nil. Templates are objects
// decoded from JSON or YAML; they are read and not kept.
func Compile(level Level, templates []map[string]any) (*Set, Diagnostics) {
	if len(templates) > MaxTemplates {
		return nil, Diagnostics{{
			List:  level.String(),
			Cause: &LimitError{What: "templates in one list", Limit: MaxTemplates},
			Hint:  "divide the devices or the objects among several Configurations",
		}}
	}
	set := &Set{level: level}
	var diags Diagnostics
	keys := map[string]bool{}
	left := int64(maxRenders * maxCompiled)
	for i, source := range templates {
		c := &compiler{level: level, origin: Origin{Level: level, Index: i}, keys: keys, limit: min(left, maxCompiled)}
		set.templates = append(set.templates, c.guarded(source))
		diags = append(diags, c.limited()...)
		left -= c.compiled
	}
	if len(diags) > 0 {
		return nil, diags
	}
	set.keys = keysOfSet(keys)
	set.kinds = kindsOf(set.templates)
	return set, nil
}

func kindsOf(templates []*template) []schema.GroupVersionKind {
	kinds := make([]schema.GroupVersionKind, len(templates))
	for i, t := range templates {
		kinds[i] = t.kind
	}
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(kinds)
}

// compiler compiles one template.
type compiler struct {
	level  Level
	origin Origin
	binds  binding
	diags  Diagnostics
	keys   map[string]bool // property keys mentioned by any template of the list
	bytes  int             // text seen so far

	compiled int64 // memory for expressions so far
	limit    int64 // of compiled
	more     bool  // there are diagnostics beyond maxDiagnostics
}

func (c *compiler) report(field Path, f *fault) {
	c.reportText(field, "", f)
}

func (c *compiler) reportText(field Path, source string, f *fault) {
	if len(c.diags) == maxDiagnostics {
		c.more = true
		return
	}
	d := f.diagnose(slices.Clone(field), source)
	d.List = c.origin.String()
	c.diags = append(c.diags, d)
}

func (c *compiler) limited() Diagnostics {
	if c.more {
		c.diags = append(c.diags, Diagnostic{List: c.origin.String(), Cause: fmt.Errorf("there may be more: correct these first")})
	}
	return c.diags
}

// template is one compiled template.
type template struct {
	origin     Origin
	metadata   []Path // see metadataPaths
	kind       schema.GroupVersionKind
	content    *mapNode
	when       *text // nil: always
	binds      binding
	directives Directives
}

// guarded is template, for mistakes of ours: none must end the process.
func (c *compiler) guarded(source map[string]any) (t *template) {
	defer func() {
		if p := recover(); p != nil {
			c.report(nil, faultf(-1, reportBug, "this template cannot be compiled"))
		}
	}()
	return c.template(source)
}

// reportBug is the hint of last resort.
const reportBug = "this is a mistake in Akri: please report it with the template"

func (c *compiler) template(source map[string]any) *template {
	t := &template{origin: c.origin}
	if len(source) == 0 {
		c.report(nil, faultf(-1, "write an object with apiVersion, kind and metadata.name", "the template is empty"))
		return t
	}
	t.kind = c.shape(source)
	t.metadata = metadataPaths(t.kind.GroupKind())
	annotations := c.annotations(source)
	t.directives = c.directives(t.kind, annotations)
	t.binds = c.binds
	t.when = c.condition(t.directives.When)
	t.content, _ = c.node(nil, source).(*mapNode)
	c.checkMetadata(t.kind, source)
	return t
}

// text compiles one string and reports what is wrong with it.
func (c *compiler) text(field Path, source string) *text {
	if !strings.Contains(source, "{{") {
		return &text{source: source}
	}
	if c.stopped() {
		return nil // reported
	}
	r := &resolver{level: c.level, binds: c.binds, keys: c.keys}
	t := compileText(source, r)
	if c.compiled += compiledText + int64(len(source)) + compiledNode*r.nodes; c.compiled > c.limit {
		e := &LimitError{What: "expressions in one template", Limit: maxCompiled >> 20, Unit: "MiB when compiled"}
		c.report(nil, &fault{offset: -1, cause: e, hint: "divide it into several templates"})
		return nil
	}
	for _, f := range r.faults {
		c.reportText(field, source, f)
	}
	if len(r.faults) > 0 {
		return nil
	}
	return t
}

// node compiles a value. It returns nil when something is wrong with it, having
// reported what. It may write beyond the end of field.
func (c *compiler) node(field Path, value any) node {
	if len(field) > MaxDepth {
		c.report(field[:8], faultf(-1, "", "lists and maps are nested more than %d deep", MaxDepth))
		return nil
	}
	switch v := value.(type) {
	case map[string]any:
		return c.mapNode(field, v)
	case []any:
		if c.spend(2 * len(v)); c.stopped() {
			return nil
		}
		list := make(listNode, len(v))
		for i, element := range v {
			list[i] = c.node(append(field, Index(i)), element)
			if c.stopped() {
				return nil
			}
		}
		return list
	case string:
		if c.spend(len(v)); c.stopped() {
			return nil
		}
		if !utf8.ValidString(v) {
			c.report(field, faultf(-1, "save the file as UTF-8", "this is not valid UTF-8"))
			return nil
		}
		if !strings.Contains(v, "{{") {
			return literalNode{value: value, bytes: len(v) + 2}
		}
		if t := c.text(field, v); t != nil {
			return &textNode{text: t}
		}
		return nil
	}
	c.spend(8)
	scalar, err := normalScalar(value)
	if err != nil {
		c.report(field, faultAt(-1, err))
		return nil
	}
	return literalNode{value: scalar, bytes: 8}
}

func (c *compiler) mapNode(field Path, source map[string]any) node {
	if c.spend(6 * len(source)); c.stopped() {
		return nil
	}
	m := &mapNode{entries: make([]entry, 0, len(source))}
	for _, key := range keysOf(source) {
		at := append(field, Key(key))
		if c.spend(len(key)); c.stopped() {
			return nil
		}
		if isDirective(at) {
			continue
		}
		if key == "" {
			c.report(field, faultf(-1, "give the key a name", "a key is empty"))
			continue
		}
		e := entry{key: c.text(at, key), value: c.node(at, source[key])}
		if e.key == nil {
			continue
		}
		if !e.key.plain() {
			m.expressions = true
			if literalKeysOnly(field) {
				c.report(at, faultf(-1, "write the key out", "keys of the object itself and of its metadata are literal"))
			}
		}
		m.entries = append(m.entries, e)
	}
	return m
}

// spend counts text, so that a template that can only make too large an object
// is refused here.
func (c *compiler) spend(bytes int) {
	if c.bytes <= MaxObjectBytes && c.bytes+bytes > MaxObjectBytes {
		e := &LimitError{What: limitObject, Limit: MaxObjectBytes >> 10, Unit: "KiB"}
		c.report(nil, &fault{offset: -1, cause: e, hint: "divide it into several objects"})
	}
	c.bytes += bytes
}

// stopped reports that a limit was met: reading on would cost more than it tells.
func (c *compiler) stopped() bool {
	return c.bytes > MaxObjectBytes || c.compiled > c.limit || c.more
}

// normalScalar makes any number int64 or float64.
func normalScalar(value any) (any, error) {
	switch v := value.(type) {
	case nil, bool, int64, string:
		return v, nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, errNotFinite
		}
		return v, nil
	case int:
		return int64(v), nil
	case int32:
		return int64(v), nil
	case uint64:
		if v <= math.MaxInt64 {
			return int64(v), nil
		}
		return nil, errOverflow
	case float32:
		return normalScalar(float64(v))
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
		f, err := v.Float64()
		if err != nil {
			return nil, fmt.Errorf("the number does not fit into 64 bits")
		}
		return normalScalar(f)
	}
	return nil, fmt.Errorf("a value of type %T is not JSON", value)
}
