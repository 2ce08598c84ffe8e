// Package templating turns lists of templates into Kubernetes objects.
//
// A template is an object as decoded from JSON or YAML in which every string and
// every map key may hold Go template expressions:
//
//	set, diags := templating.Compile(templating.InstanceLevel, spec.InstanceBrokerResources)
//	objects, diags := set.Render(templating.Values{...})
//
// [Compile] settles everything that can be settled without values: syntax, names,
// levels, argument counts, the shape of the object, directives. A [Set] is what it
// returns. [Set.Render] fills it with the values of one Instance, or of a whole
// Configuration, and returns [Object] values.
//
// The syntax is that of text/template, parsed by its own parser. Evaluation is
// this package's: a walk over the parsed tree in which every step, byte and loop
// pass is paid for from a budget, names mean what names.go lists, functions are
// those of functable.go, and values are only nil, bool, int64, float64, string,
// []any and map[string]any. Where both accept a template, the result is that of
// text/template; twin_test.go holds the package to it.
//
// Read compile.go, text.go, resolve.go (names settled), eval.go, render.go.
//
// Always:
//   - The same Set and Values give the same objects, byte for byte.
//   - All mistakes of all templates are reported at once, each as a [Diagnostic]
//     with place, cause and remedy. A template that fails stops no other.
//   - A Set is immutable and safe for concurrent use. Input is never mutated and
//     never shared with the output.
//   - Cost is bounded by the limits in budget.go, however hostile a template is.
//   - A device property becomes text or a number, never a list or a map.
//
// Never: a clock, randomness, environment, file, network, client, goroutine or
// panic; the value of a device property in a message.
package templating
