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
	var objects []Object
	diags := s.Each(values, func(object Object) { objects = append(objects, object) }, nil)
	return objects, diags
}

// Each is Render for callers that do not need all objects at the same time: it calls
// visit with each object as soon as it is rendered, and does not retain it. It renders
// no further object once stop, if it is not nil, returns true.
func (s *Set) Each(values Values, visit func(Object), stop func() bool) Diagnostics {
	if s == nil {
		return nil
	}
	return s.render(budget.NewList(), values, visit, stop)
}

// render renders the templates with what is left of a budget.
func (s *Set) render(left *budget.List, values Values, visit func(Object), stop func() bool) Diagnostics {
	if stop == nil {
		stop = func() bool { return false }
	}
	r := &renderer{
		scope:    &scope{level: s.level, values: values},
		partly:   s.partly,
		visit:    visit,
		stop:     stop,
		rendered: make(map[identity]Origin, len(s.templates)),
	}
	r.machine.Scope = r.scope
	for _, t := range s.templates {
		if stop() {
			break
		}
		left.Run(func(b *budget.Budget) {
			r.machine.Budget = b
			r.template(t)
		})
	}
	return r.diags
}

// renderer is one rendering of some templates.
type renderer struct {
	scope    *scope
	partly   bool
	machine  expr.Machine
	visit    func(Object)
	stop     func() bool
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
	b := &objectBuilder{builder: builder{reporter: reporter{origin: t.origin, secret: isSecret(t.kind)}, machine: &r.machine}, template: t}
	if t.binds == bindsNothing {
		r.scope.element = nil
		r.one(b)
	} else {
		r.each(b, r.scope.elements(t.binds))
	}
	r.diags = append(r.diags, b.diagnostics(fmt.Sprintf("there are %d more: correct these first", b.more))...)
}

// each renders one object per element of for-each.
func (r *renderer) each(b *objectBuilder, elements []any) {
	if len(elements) > MaxElements {
		hint := "split the devices among several Configurations"
		if b.template.binds == bindsInstance {
			hint = "write the template in instanceBrokerResources, which may have any number of devices, or " + hint
		}
		tooMany := budget.Limitf(hint, "objects created by one for-each are limited to %d", MaxElements)
		b.report(annotationsPath.with(Key(annotationForEach)), "", tooMany)
		return
	}
	for _, element := range elements {
		r.scope.element = element
		b.origin.Element = elementName(element)
		b.machine.Budget.NextObject()
		if r.one(b); b.machine.Budget.Spent() || r.stop() {
			return
		}
	}
}

// one renders one object and passes it to visit.
func (r *renderer) one(b *objectBuilder) {
	if object, ok := r.object(b); ok {
		r.visit(object)
	}
}

// object renders one object, unless its condition does not hold. It turns a panic
// into a diagnostic.
func (r *renderer) object(b *objectBuilder) (object Object, ok bool) {
	defer func() {
		if p := recover(); p != nil {
			b.reportf(nil, reportBug, "this template cannot be rendered")
			ok = false
		}
	}()
	b.path = b.path[:0]
	if holds, ok := b.condition(); !holds || !ok {
		return Object{}, false
	}
	content, ok := b.content()
	if _, hasMetadata := content["metadata"].(map[string]any); !hasMetadata {
		return Object{}, false // reported
	}
	if finished := b.finish(content, r.scope); !ok || !finished {
		return Object{Content: content, Directives: b.template.directives, Origin: b.origin}, r.partly
	}
	id := identityOf(b.template.kind, content)
	if other, found := r.rendered[id]; found {
		const hint = "use NODE or INSTANCE.name in the name under for-each, and a different suffix in each template"
		b.reportName(fault.Newf(fault.Whole, hint, "the same object is rendered by %s", other))
		return Object{}, false
	}
	r.rendered[id] = b.origin
	return Object{
		Content: content, Directives: b.template.directives, Origin: b.origin, Allocated: b.machine.Budget.ObjectAllocated(),
	}, true
}

func identityOf(kind schema.GroupVersionKind, content map[string]any) identity {
	metadata := content["metadata"].(map[string]any)
	id := identity{kind: kind.GroupKind()}
	id.name, _ = metadata["name"].(string)
	id.namespace, _ = metadata["namespace"].(string)
	return id
}
