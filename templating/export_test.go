package templating

import "akri.sh/akri/templating/internal/budget"

// RenderCounting renders, and returns the steps and the bytes of memory that the
// templates paid for.
func (s *Set) RenderCounting(values Values) (objects []Object, diags Diagnostics, steps, bytes int64) {
	left := budget.NewList()
	diags = s.render(left, values, func(object Object) { objects = append(objects, object) }, nil)
	steps, bytes = left.Spent()
	return objects, diags, steps, bytes
}

// RenderWithin renders with a budget that has only so many steps and bytes of memory left.
func (s *Set) RenderWithin(values Values, steps, bytes int64) (objects []Object, diags Diagnostics) {
	const allSteps, allBytes = 4_000_000, 88 << 20 // of a list
	left := budget.NewList()
	spend := func(all, want, part int64, pay func(b *budget.Budget, n int64) error) {
		for all > want {
			n := min(part, all-want)
			left.Run(func(b *budget.Budget) { _ = pay(b, n) })
			all -= n
		}
	}
	spend(allSteps, steps, 1_000_000, (*budget.Budget).Step)
	spend(allBytes, bytes, MaxObjectBytes, (*budget.Budget).Allocate)
	diags = s.render(left, values, func(object Object) { objects = append(objects, object) }, nil)
	return objects, diags
}

// VariableNames returns the bare words of the language.
func VariableNames() []string {
	var n []string
	for _, v := range variables {
		n = append(n, v.Name)
	}
	return n
}

// DirectiveKeys returns the annotations that are directives.
func DirectiveKeys() []string { return directiveKeys }

// CompileBroken compiles a template with a compiler that has no names, so that it panics.
func CompileBroken(source map[string]any) Diagnostics {
	c := &compiler{reporter: &reporter{origin: Origin{Level: InstanceLevel}}, limit: maxCompiled}
	c.compile(source)
	return c.diagnostics("")
}

// BrokenSet returns a Set whose first template panics when it is rendered.
func (s *Set) BrokenSet() *Set {
	broken := *s.templates[0]
	broken.content = nil
	return &Set{level: s.level, templates: append([]*template{&broken}, s.templates[1:]...)}
}
