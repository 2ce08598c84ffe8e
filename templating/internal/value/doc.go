// Package value defines the values that expressions compute with: nil, bool,
// int64, float64, string, []any, map[string]any, and the two named map types
// [Properties] and [Selector].
//
// Always: values are treated as immutable once they exist.
//
// Never: the text of a value in an error; errors name types and keys only.
package value
