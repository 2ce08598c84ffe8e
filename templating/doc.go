// Package templating renders lists of templates to Kubernetes objects.
//
// A template is an object as decoded from JSON or YAML in which every string and
// every map key may contain Go template expressions:
//
//	set, diags := templating.Compile(templating.InstanceLevel, spec.InstanceBrokerResources)
//	objects, diags := set.Render(templating.Values{...})
//
// [Compile] checks everything that can be checked without values: syntax, names,
// levels, argument counts, the shape of the object, directives. It returns a [Set].
// [Set.Render] fills the Set with the values of one Instance, or of a whole
// Configuration, and returns [Object] values.
//
// The expressions are internal/expr, their functions internal/functions, and what
// they may cost internal/budget. This package adds what is specific to objects of
// Akri: the variables (names.go, values.go), directives, and the checks of names,
// labels and annotations.
//
// Read compile.go, shape.go, render.go, finish.go.
//
// Always:
//   - The same Set and Values give the same objects, byte for byte.
//   - All mistakes of all templates are reported at once, each as a [Diagnostic]
//     with place, cause and remedy. A template that fails stops no other.
//   - A Set is immutable and safe for concurrent use. Input is never changed and
//     never shared with the output.
//   - Cost is bounded by the limits in internal/budget, however hostile a template
//     is.
//   - A device property becomes text or a number, never a list or a map.
//
// Never: a clock, randomness, environment, file, network, client, goroutine or
// panic; the value of a device property in a message.
package templating
