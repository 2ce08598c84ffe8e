package templating

import (
	"maps"
	"slices"
	"unicode/utf8"

	"akri.sh/akri/templating/internal/budget"
	"akri.sh/akri/templating/internal/expr"
	"akri.sh/akri/templating/internal/fault"
	"akri.sh/akri/templating/internal/value"
)

// Compile checks a list of templates and prepares it for rendering. It reports all
// mistakes at once; if there are any, the Set is nil. Templates are objects decoded
// from JSON or YAML. Compile neither changes nor keeps them.
func Compile(level Level, templates []map[string]any) (*Set, Diagnostics) {
	set, diags := CompilePartly(level, templates)
	if len(diags) > 0 {
		return nil, diags
	}
	set.partly = false
	return set, nil
}

// CompilePartly is Compile for checks that look for what else is wrong: the Set renders all
// objects, with null for the values that have mistakes.
func CompilePartly(level Level, templates []map[string]any) (*Set, Diagnostics) {
	if len(templates) > MaxTemplates {
		list := &reporter{origin: Origin{Level: level, Index: -1}}
		const hint = "split the devices or the objects among several Configurations"
		list.report(nil, "", budget.Limitf(hint, "templates in one list are limited to %d", MaxTemplates))
		return nil, list.diags
	}
	set := &Set{level: level, partly: true}
	var diags Diagnostics
	keys := map[string]bool{}
	left := int64(maxCompiledTemplates * maxCompiled)
	for i, source := range templates {
		c := &compiler{
			reporter: &reporter{origin: Origin{Level: level, Index: i}},
			names:    &names{level: level}, keys: keys, limit: min(left, maxCompiled),
		}
		set.templates = append(set.templates, c.compile(source))
		diags = append(diags, c.diagnostics("there may be more: correct these first")...)
		left -= c.compiled
	}
	set.keys = slices.Sorted(maps.Keys(keys))
	set.kinds = kindsOf(set.templates)
	return set, diags
}

// compiler compiles one template.
type compiler struct {
	*reporter
	names *names
	keys  map[string]bool // property keys mentioned by any template of the list
	bytes int             // text seen so far

	compiled int64 // memory for expressions so far
	limit    int64 // of compiled
}

// compile compiles a template. It turns a panic into a diagnostic.
func (c *compiler) compile(source map[string]any) (t *template) {
	defer func() {
		if p := recover(); p != nil {
			c.reportf(nil, reportBug, "this template cannot be compiled")
		}
	}()
	t = &template{origin: c.origin, content: &mapNode{}}
	if len(source) == 0 {
		c.reportf(nil, "write an object with apiVersion, kind and metadata.name", "the template has no fields")
		return t
	}
	t.kind = checkShape(c.reporter, source)
	c.secret = isSecret(t.kind)
	t.metadata = metadataPaths(t.kind.GroupKind())
	t.directives, t.binds = readDirectives(c.reporter, t.kind, source)
	c.names.binds = t.binds
	t.when = c.condition(t.directives.When)
	if content, ok := c.node(nil, source).(*mapNode); ok {
		t.content = content
	}
	checkMetadata(c.reporter, t.metadata, source)
	checkAdoption(c.reporter, t.directives, t.nameSource())
	return t
}

// condition compiles akri.sh/when.
func (c *compiler) condition(source string) *expr.Text {
	if source == "" {
		return nil
	}
	field := annotationsPath.with(Key(annotationWhen))
	t := c.text(field, source)
	if t != nil && !t.IsWhole() {
		c.reportf(field, `write a single expression: "{{ gt CAPACITY 1 }}"`, "%s is not a single expression", fault.Quote(source, 63))
		return nil
	}
	return t
}

// text compiles one string. It returns nil if it has reported a mistake.
func (c *compiler) text(field Path, source string) *expr.Text {
	if expr.Has(source) && c.stopped() {
		return nil // reported
	}
	t, report := expr.Compile(source, c.names)
	if c.compiled += report.Cost; c.compiled > c.limit {
		c.reportCompiled()
		return nil
	}
	for _, f := range report.Faults {
		c.report(field, source, f)
	}
	if len(report.Faults) > 0 {
		return nil
	}
	for _, key := range report.PropertyKeys {
		c.keys[key] = true
	}
	return t
}

// reportCompiled reports that the expressions of the template, or of the list, take too
// much memory.
func (c *compiler) reportCompiled() {
	hint, what, limit := "split it into several templates", "one template", maxCompiled>>20
	if c.limit < maxCompiled {
		hint, what = "split the list among several Configurations", "all templates of a list"
		limit *= maxCompiledTemplates
	}
	c.report(nil, "", budget.Limitf(hint, "expressions in %s are limited to %d MiB when compiled", what, limit))
}

// node compiles a value. It returns nil if it has reported a mistake. It may write
// beyond the end of field.
func (c *compiler) node(field Path, source any) node {
	if len(field) > budget.MaxDepth {
		c.reportf(field[:8], "", "lists and maps are nested more than %d deep", budget.MaxDepth)
		return nil
	}
	switch v := source.(type) {
	case map[string]any:
		return c.mapNode(field, v)
	case []any:
		return c.listNode(field, v)
	case string:
		return c.textNode(field, v, source)
	}
	c.spend(8)
	scalar, err := value.Normalize(source)
	if err != nil {
		c.report(field, "", fault.At(fault.Whole, err))
		return nil
	}
	return literalNode{value: scalar, bytes: 8}
}

// textNode compiles a string. Source is the string as decoded, which a literal
// keeps: boxing it again would cost an allocation.
func (c *compiler) textNode(field Path, s string, source any) node {
	if c.spend(len(s)); c.stopped() {
		return nil
	}
	if !utf8.ValidString(s) {
		c.reportf(field, "save the file as UTF-8", "this is not valid UTF-8")
		return nil
	}
	if !expr.Has(s) {
		return literalNode{value: source, bytes: len(s) + 2}
	}
	if t := c.text(field, s); t != nil {
		return &textNode{text: t}
	}
	return nil
}

func (c *compiler) listNode(field Path, source []any) node {
	if c.spend(2 * len(source)); c.stopped() {
		return nil
	}
	list := make(listNode, len(source))
	for i, element := range source {
		list[i] = c.node(append(field, Index(i)), element)
		if c.stopped() {
			return nil
		}
	}
	return list
}

func (c *compiler) mapNode(field Path, source map[string]any) node {
	if c.spend(6 * len(source)); c.stopped() {
		return nil
	}
	m := &mapNode{entries: make([]entry, 0, len(source))}
	for _, key := range value.Keys(source) {
		at := append(field, Key(key))
		if c.spend(len(key)); c.stopped() {
			return nil
		}
		if isDirective(at) {
			continue
		}
		switch {
		case key == "":
			c.reportf(field, "give the key a name", "a key is empty")
			continue
		case !utf8.ValidString(key):
			c.reportf(at, "save the file as UTF-8", "this key is not valid UTF-8")
			continue
		}
		e := entry{key: c.text(at, key), value: c.node(at, source[key])}
		if e.key == nil {
			continue
		}
		if !e.key.IsPlain() {
			m.expressions = true
			if literalKeysOnly(field) {
				c.reportf(at, "write the key as a literal", "keys of the object itself and of its metadata cannot have expressions")
			}
		}
		m.entries = append(m.entries, e)
	}
	return m
}

// spend counts text, so that a template that can only render too large an object
// is refused here.
func (c *compiler) spend(bytes int) {
	if c.bytes <= MaxObjectBytes && c.bytes+bytes > MaxObjectBytes {
		c.report(nil, "", budget.Limitf("split it into several objects", "texts and objects are limited to %d KiB", MaxObjectBytes>>10))
	}
	c.bytes += bytes
}

// stopped reports whether a limit was met. Compiling more would cost time and
// report nothing new.
func (c *compiler) stopped() bool {
	return c.bytes > MaxObjectBytes || c.compiled > c.limit || c.full()
}
