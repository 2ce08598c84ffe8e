// Package jsonpatch builds JSON Patches (RFC 6902).
package jsonpatch

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Patch is a list of operations that the API server applies all together, or
// not at all.
type Patch []Operation

// Operation is one step of a Patch. A nil Value is sent as null: a "test" for
// null passes on an absent key (seen with API servers 1.31 to 1.37).
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// Test makes the whole patch fail unless the value at path equals value.
func Test(path string, value any) Operation { return Operation{"test", path, value} }

// Add sets the value at path; its parent must exist.
func Add(path string, value any) Operation { return Operation{"add", path, value} }

// Replace sets the value at path, which must exist.
func Replace(path string, value any) Operation { return Operation{"replace", path, value} }

// Remove deletes the value at path, which must exist.
func Remove(path string) Operation { return Operation{"remove", path, nil} }

var escaper = strings.NewReplacer("~", "~0", "/", "~1")

// Pointer returns the JSON Pointer (RFC 6901) with these reference tokens.
func Pointer(tokens ...string) string {
	var pointer strings.Builder
	for _, token := range tokens {
		pointer.WriteByte('/')
		escaper.WriteString(&pointer, token) //nolint:errcheck // a strings.Builder never fails
	}
	return pointer.String()
}

// Encode returns the patch as JSON. It panics if a value cannot be encoded, which
// is a mistake in the program.
func (p Patch) Encode() []byte {
	encoded, err := json.Marshal(p)
	if err != nil {
		panic(fmt.Sprintf("encode JSON Patch: %v", err))
	}
	return encoded
}
