package schema

import (
	"cmp"
	"fmt"
	"strings"

	"akri.sh/akri/internal/text"
	"akri.sh/akri/templating"
)

// form is how a value of a type is written, and what an expression must yield for it.
type form struct{ name, hint, expression string }

var (
	aMap      = form{"a map", "put its fields below it, indented", ""}
	aList     = form{"a list", "start each element with a dash", ""}
	aString   = form{"a string", "write a single string; after key: |, the indented lines below form one", `append | join "," or | toJson`}
	aBoolean  = form{"true or false", "use true or false without quotes", `make it a whole expression, and append | eq "true", or "yes"`}
	anInteger = form{"an integer", "use digits without quotes", "make the expression the whole value, and append | int"}
	// forms has the types of OpenAPI and the kinds of Go types.
	forms = map[string]form{
		"object": aMap, "map": aMap, "struct": aMap, "array": aList, "slice": aList, "string": aString, "boolean": aBoolean, "bool": aBoolean,
		"integer": anInteger, "int": anInteger, "int64": anInteger,
		"int32":                      {"an integer of 32 bits", anInteger.hint, anInteger.expression},
		"x-kubernetes-int-or-string": {"an integer or a string", "use digits without quotes, or a string", ""},
		"intstr.IntOrString": {"an integer, the name of a port or a percentage",
			"use digits without quotes, or a name of at most 15 characters a-z, 0-9 and -", anInteger.expression},
		"resource.Quantity": {"a quantity", "use a quantity such as 1, 100m or 64Mi", ""},
		"v1.Time":           {"a time", "use the form 2026-01-31T12:00:00Z", ""},
		"v1.MicroTime":      {"a time", "use the form 2026-01-31T12:00:00.000000Z", ""},
		"[]uint8": {"text in Base64", "encode it; a Secret takes plain text in stringData, a ConfigMap in data",
			"append | b64enc"},
	}
)

// wrongType reports that a value is not of a type. The known fields are those of a map, if
// that is what it must be.
func (c *checker) wrongType(at templating.Path, want string, value any, known []string) {
	expected, found := forms[want]
	if !found {
		expected.name = "of type " + want
	}
	_, isList := value.([]any)
	_, isMap := value.(map[string]any)
	written := fmt.Sprint(value)
	if c.source != nil {
		written = cmp.Or(c.source.Written(at), written)
	}
	switch {
	case value == nil:
		c.report(at, "remove the dash or add the element", "the element is empty")
		return
	case expected == aString && !isList && !isMap:
		expected.hint, expected.expression = fmt.Sprintf("quote it: %q", written), "append | toString"
	case expected == aList && isMap:
		expected.hint = "put a dash before its first field"
	case expected == aMap && len(known) > 0:
		expected.hint += ": " + strings.Join(known, ", ")
	}
	switch isExpression := strings.Contains(written, "{{"); {
	case c.rendered && isExpression && expected.expression != "":
		expected.hint = expected.expression
	case isExpression && !c.rendered:
		expected.hint += "; only broker resources may have expressions"
	}
	report := c.add
	switch want {
	case "resource.Quantity", "v1.Time", "v1.MicroTime", "[]uint8": // other strings may be right
		report = c.addValue
	}
	report(templating.Diagnostic{Field: at}, expected.hint, fmt.Sprintf("must be %s, not %s", expected.name, describe(value)))
}

// maxValueBytes limits the part of a value that a message quotes.
const maxValueBytes = 40

// describe returns a value with its type, for messages.
func describe(value any) string {
	switch v := value.(type) {
	case string:
		return fmt.Sprintf("the string %q", text.Truncate(v, maxValueBytes))
	case int64, float64:
		return fmt.Sprintf("the number %v", v)
	case []any:
		return "a list"
	case map[string]any:
		return "a map"
	}
	return fmt.Sprint(value)
}
