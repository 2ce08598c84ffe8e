package templating

import (
	"fmt"
	"maps"
	"slices"

	v0 "akri.sh/akri/api/v0"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Render makes the objects for values, in the order of the templates and, inside
// one for-each, of its elements. What cannot be made is told by diagnostics and
// missing from the objects; everything else is made. Who removes what is no
// longer rendered must therefore look at the diagnostics first.
func (s *Set) Render(values Values) ([]Object, Diagnostics) {
	if s == nil {
		return nil, nil
	}
	r := &renderer{
		scope: &scope{level: s.level, values: values},
		taken: make(map[identity]Origin, len(s.templates)),
		left:  newBudget(maxRenders*maxSteps, maxRenders*maxAllocation),
	}
	r.machine.scope = r.scope
	for _, t := range s.templates {
		r.template(t)
	}
	return r.objects, r.diags
}

// renderer is one call of Render.
type renderer struct {
	scope   *scope
	machine machine
	left    *budget // for the whole list
	objects []Object
	diags   Diagnostics
	taken   map[identity]Origin
}

// identity is what two objects cannot have in common.
type identity struct {
	kind            schema.GroupKind
	namespace, name string
}

// template renders all objects of one template.
func (r *renderer) template(t *template) {
	steps, allocation := min(maxSteps, r.left.steps), min(maxAllocation, r.left.allocation)
	b := &builder{machine: &r.machine, template: t, origin: t.origin}
	r.machine.budget = newBudget(steps, allocation)
	r.each(b)
	r.left.steps -= steps - max(r.machine.budget.steps, 0)
	r.left.allocation -= allocation - max(r.machine.budget.allocation, 0)
	r.diags = append(r.diags, b.limited()...)
}

// each goes through the elements of for-each; without it there is one.
func (r *renderer) each(b *builder) {
	var elements []any
	switch b.template.binds {
	case bindsNothing:
		r.scope.element = nil
		r.object(b)
		return
	case bindsNode:
		elements = r.scope.nodes().([]any)
	case bindsInstance:
		elements = r.scope.instances().([]any)
	}
	if len(elements) > MaxElements {
		b.path = annotationsPath.with(Key(annotationForEach))
		b.report(faultAt(-1, &LimitError{What: limitElements, Limit: MaxElements}), "")
		return
	}
	for _, element := range elements {
		r.scope.element = element
		b.origin.Element = elementName(element)
		r.machine.budget.nextObject()
		if r.object(b); b.spent() {
			return
		}
	}
}

func elementName(element any) string {
	if instance, is := element.(map[string]any); is {
		element = instance["name"]
	}
	name, _ := element.(string)
	return name
}

// object renders one object, unless its condition says no.
func (r *renderer) object(b *builder) {
	defer func() {
		if p := recover(); p != nil { // a mistake of ours: it must not end the process
			b.path = b.path[:0]
			b.report(faultf(-1, reportBug, "this template cannot be rendered"), "")
		}
	}()
	b.path = b.path[:0]
	if wanted, ok := b.wanted(); !wanted || !ok {
		return
	}
	content, ok := b.content()
	if !ok || !b.finish(content, r.scope) {
		return
	}
	id := identityOf(b.template.kind, content)
	if other, found := r.taken[id]; found {
		b.path = append(b.path[:0], namePath...)
		b.report(faultf(-1, "let the names differ: use NODE or INSTANCE.name under for-each, and another suffix in each template",
			"the same object is made by %s", other), b.template.nameSource())
		return
	}
	r.taken[id] = b.origin
	r.objects = append(r.objects, Object{Content: content, Directives: b.template.directives, Origin: b.origin})
}

func identityOf(kind schema.GroupVersionKind, content map[string]any) identity {
	metadata := content["metadata"].(map[string]any)
	id := identity{kind: kind.GroupKind()}
	id.name, _ = metadata["name"].(string)
	id.namespace, _ = metadata["namespace"].(string)
	return id
}

// nameSource is what the author wrote as metadata.name.
func (t *template) nameSource() string {
	switch name := childOf(childOf(t.content, "metadata"), "name").(type) {
	case *textNode:
		return name.text.source
	case literalNode:
		source, _ := name.value.(string)
		return source
	}
	return ""
}

// builder makes the objects of one template and remembers where it is.
type builder struct {
	machine  *machine
	template *template
	origin   Origin
	path     Path
	diags    Diagnostics
	more     int
}

func (b *builder) report(f *fault, source string) {
	if len(b.diags) == maxDiagnostics {
		b.more++
		return
	}
	d := f.diagnose(slices.Clone(b.path), source)
	d.List = b.origin.String()
	b.diags = append(b.diags, d)
}

func (b *builder) limited() Diagnostics {
	if b.more > 0 {
		b.diags = append(b.diags, Diagnostic{List: b.template.origin.String(), Cause: fmt.Errorf("there are %d more: correct these first", b.more)})
	}
	return b.diags
}

// pay charges for a part of the object: text as it will be in JSON, and memory.
func (b *builder) pay(output int, memory int64) bool {
	err := b.machine.budget.spendOn(output, memory)
	if err == nil {
		err = b.machine.budget.step(1)
	}
	if err != nil {
		b.report(faultAt(-1, err), "")
	}
	return err == nil
}

// exhausted reports that the object cannot be completed.
func (b *builder) exhausted() bool { return b.machine.budget.exhausted != nil }

// spent reports that nothing is left for further objects of the template.
func (b *builder) spent() bool {
	return b.machine.budget.steps < 0 || b.machine.budget.allocation < 0
}

// wanted evaluates akri.sh/when.
func (b *builder) wanted() (wanted, ok bool) {
	if b.template.when == nil {
		return true, true
	}
	value, f := b.machine.evaluate(b.template.when)
	if f != nil {
		b.path = append(b.path[:0], annotationsPath.with(Key(annotationWhen))...)
		b.report(f, b.template.when.source)
		return false, false
	}
	return truthy(value), true
}

func (b *builder) content() (map[string]any, bool) {
	content, ok := b.template.content.render(b)
	if !ok {
		return nil, false
	}
	return content.(map[string]any), true
}

// finish checks what could not be checked before there were values, and puts the
// labels on.
func (b *builder) finish(content map[string]any, scope *scope) bool {
	metadata := content["metadata"].(map[string]any)
	complete := b.finishName(metadata)
	stamp := scope.selector().(selectorMap)
	for i, path := range b.template.metadata {
		labels := stamp
		if i == 0 && b.template.directives.LegacyLabels {
			labels = b.legacyLabels(scope)
		}
		complete = b.finishMetadata(content, path, i == 0, labels) && complete
	}
	return complete
}

// legacyLabels is what Akri put on objects of its old fields: a Service of an
// Instance does not name the Configuration, so that queries for the Service of the
// whole group keep finding one; a Pod names its node.
func (b *builder) legacyLabels(scope *scope) selectorMap {
	labels := maps.Clone(scope.selector().(selectorMap))
	switch kind := b.template.kind.Kind; {
	case kind == "Service" && scope.level == InstanceLevel:
		delete(labels, v0.LabelConfiguration)
	case kind == "Pod" && b.template.binds == bindsNode && len(b.origin.Element) <= 63:
		labels[v0.Domain+"/target-node"] = b.origin.Element
	}
	return labels
}

func (b *builder) finishName(metadata map[string]any) bool {
	b.path = append(b.path[:0], namePath...)
	name, isText := metadata["name"].(string)
	if !isText {
		b.report(faultf(-1, "make it text: {{ … | toString }}", "the name must be text, not %s", kindName(metadata["name"])), b.template.nameSource())
		return false
	}
	if f := checkName(name); f != nil {
		if name == "" {
			f.hint = `write {{ … | default "..." }} to say what to use then`
		}
		b.report(f, b.template.nameSource())
		return false
	}
	return true
}

// finishMetadata checks labels and annotations of the object itself or of its
// pods, and adds ours.
func (b *builder) finishMetadata(content map[string]any, path Path, own bool, stamp selectorMap) bool {
	owner, isMap := follow(content, path[:len(path)-1]).(map[string]any)
	if !isMap {
		return true // the API server will say what it misses
	}
	key := path[len(path)-1].Key
	metadata, isMap := owner[key].(map[string]any)
	if !isMap {
		if owner[key] != nil {
			return true
		}
		metadata = map[string]any{}
		owner[key] = metadata
	}
	complete := true
	for _, field := range pairFields {
		b.path = append(append(b.path[:0], path...), Key(field))
		complete = b.checkPairs(metadata[field], field, own, stamp) && complete
	}
	if !complete {
		return false
	}
	if annotations, isMap := metadata["annotations"].(map[string]any); isMap && len(annotations) == 0 {
		delete(metadata, "annotations") // directives alone
	}
	labels, _ := metadata["labels"].(map[string]any)
	if labels == nil {
		labels = make(map[string]any, 3)
		metadata["labels"] = labels
	}
	for key, value := range stamp {
		labels[key] = value
	}
	if own {
		labels[v0.LabelManagedBy] = v0.ManagedBy
	}
	return true
}

// checkPairs refuses labels or annotations that are not text or not the
// template's to set. LABEL_SELECTOR as labels is welcome: it says what we say.
func (b *builder) checkPairs(value any, field string, own bool, stamp selectorMap) bool {
	pairs, isMap := value.(map[string]any)
	if !isMap {
		if value != nil {
			b.report(faultf(-1, "write KEY: VALUE pairs", "%s must be a map, not %s", field, kindName(value)), "")
		}
		return value == nil
	}
	complete := true
	for _, key := range keysOf(pairs) {
		var f *fault
		text, isText := pairs[key].(string)
		switch {
		case reserved(key) && (field != "labels" || stamp[key] != pairs[key]):
			f = reservedFault(field, key)
		case !isText:
			f = faultf(-1, "make it text: {{ … | toString }}", "%s hold text, not %s", field, kindName(pairs[key]))
		case own && field == "labels" && key == v0.LabelManagedBy && text != v0.ManagedBy:
			f = managedByFault()
		}
		if f != nil {
			b.reportPair(key, f)
			complete = false
		}
	}
	return complete
}

// reportPair reports a fault of one label or annotation. It names the key only if
// the author wrote it: a key that was computed may hold the value of a property.
func (b *builder) reportPair(key string, f *fault) {
	var at node = b.template.content
	for _, step := range append(slices.Clone(b.path), Key(key)) {
		at = childOf(at, step.Key)
	}
	if at != nil {
		b.path = append(b.path, Key(key))
		defer func() { b.path = b.path[:len(b.path)-1] }()
	}
	b.report(f, "")
}

// childOf is the value that the author wrote under a plain key, or nil.
func childOf(of node, key string) node {
	m, _ := of.(*mapNode)
	if m == nil {
		return nil
	}
	for _, e := range m.entries {
		if e.key.plain() && e.key.source == key {
			return e.value
		}
	}
	return nil
}
