package jsonvalue

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"
)

// Join returns the path with these elements, which may be any text.
func Join(elements ...string) string {
	escaped := make([]string, len(elements))
	for i, each := range elements {
		escaped[i] = gjson.Escape(each)
	}
	return strings.Join(escaped, ".")
}

// Parse returns a document. ok is false if it is not JSON, which [json.Valid] decides because
// it has a bound on the depth.
func Parse(document []byte) (value gjson.Result, ok bool) {
	if !json.Valid(document) {
		return gjson.Result{}, false
	}
	return gjson.ParseBytes(document), true
}

// Lookup returns the value at a path; the value itself if the path is empty.
func Lookup(value gjson.Result, path string) gjson.Result {
	if path == "" {
		return value
	}
	return value.Get(path)
}

// Text returns the text of a string, and numbers and Booleans as they are written. ok is false
// for other values. The text does not keep the document in memory.
func Text(value gjson.Result) (content string, ok bool) {
	switch value.Type {
	case gjson.String:
		return strings.Clone(strings.ToValidUTF8(value.Str, "\uFFFD")), true
	case gjson.Number, gjson.True, gjson.False:
		return strings.Clone(value.Raw), true
	}
	return "", false
}
