package templating

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"akri.sh/akri/templating/internal/budget"
	"akri.sh/akri/templating/internal/expr"
	"akri.sh/akri/templating/internal/fault"
)

// Render returns the objects for values, in the order of the templates and, within
// one for-each, of its elements. Objects that fail to render are reported as
// diagnostics and omitted. A caller that prunes must check the diagnostics first.
func (s *Set) Render(values Values) ([]Object, Diagnostics) {
	return s.render(values, budget.NewList())
}

// render renders with what is left of a budget.
func (s *Set) render(values Values, left *budget.List) ([]Object, Diagnostics) {
	if s == nil {
		return nil, nil
	}
	r := &renderer{
		scope:    &scope{level: s.level, values: values},
		rendered: make(map[identity]Origin, len(s.templates)),
	}
	r.machine.Scope = r.scope
	for _, t := range s.templates {
		left.Run(func(b *budget.Budget) {
			r.machine.Budget = b
			r.template(t)
		})
	}
	return r.objects, r.diags
}

// renderer is one call of Render.
type renderer struct {
	scope    *scope
	machine  expr.Machine
	objects  []Object
	diags    Diagnostics
	rendered map[identity]Origin
}

// identity is unique among the objects of a rendering.
type identity struct {
	kind            schema.GroupKind
	namespace, name string
}

// template renders all objects of one template.
func (r *renderer) template(t *template) {
	b := &objectBuilder{builder: builder{reporter: reporter{origin: t.origin}, machine: &r.machine}, template: t}
	if t.binds == bindsNothing {
		r.scope.element = nil
		r.object(b)
	} else {
		r.each(b, r.scope.elements(t.binds))
	}
	r.diags = append(r.diags, b.diagnostics(fmt.Sprintf("there are %d more: correct these first", b.more))...)
}

// each renders one object per element of for-each.
func (r *renderer) each(b *objectBuilder, elements []any) {
	if len(elements) > MaxElements {
		b.report(annotationsPath.with(Key(annotationForEach)), "", fault.At(fault.Whole, &LimitError{
			What: "objects created by one for-each", Limit: MaxElements,
			Hint: "split the devices among several Configurations",
		}))
		return
	}
	for _, element := range elements {
		r.scope.element = element
		b.origin.Element = elementName(element)
		b.machine.Budget.NextObject()
		if r.object(b); b.machine.Budget.Spent() {
			return
		}
	}
}

// object renders one object, unless its condition does not hold. It turns a panic
// into a diagnostic.
func (r *renderer) object(b *objectBuilder) {
	defer func() {
		if p := recover(); p != nil {
			b.reportf(nil, reportBug, "this template cannot be rendered")
		}
	}()
	b.path = b.path[:0]
	if holds, ok := b.condition(); !holds || !ok {
		return
	}
	content, ok := b.content()
	if !ok || !b.finish(content, r.scope) {
		return
	}
	id := identityOf(b.template.kind, content)
	if other, found := r.rendered[id]; found {
		const hint = "use NODE or INSTANCE.name in the name under for-each, and a different suffix in each template"
		b.reportName(fault.Newf(fault.Whole, hint, "the same object is rendered by %s", other))
		return
	}
	r.rendered[id] = b.origin
	r.objects = append(r.objects, Object{Content: content, Directives: b.template.directives, Origin: b.origin})
}

func identityOf(kind schema.GroupVersionKind, content map[string]any) identity {
	metadata := content["metadata"].(map[string]any)
	id := identity{kind: kind.GroupKind()}
	id.name, _ = metadata["name"].(string)
	id.namespace, _ = metadata["namespace"].(string)
	return id
}
