// Package expr is the expression language of templates: [Compile] turns a string
// into a [Text], and a [Machine] evaluates it.
//
// The syntax is that of text/template, parsed by its own parser. Evaluation walks
// the parsed tree: every step, byte and loop pass is paid for from a budget. The
// caller defines the variables by implementing [Names] and [Scope].
// Where text/template accepts the same text, the result is the same.
//
// Read text.go, resolve.go (names become variables, functions and slots), eval.go,
// exec.go.
//
// Always: a Text is immutable and safe for concurrent use. All mistakes in a text
// are reported at once.
//
// Never: a name looked up during evaluation; a panic; the value of a variable in a
// fault.
package expr
