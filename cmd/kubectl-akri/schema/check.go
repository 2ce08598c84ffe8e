package schema

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"akri.sh/akri/internal/text"
	"akri.sh/akri/templating"
)

// Mistake is an error in an object.
type Mistake struct {
	Place templating.Path // of the field, or of the map that lacks it
	Cause string          // lower case
	Hint  string          // remedy; may be empty
	// OfKey reports whether the key is wrong rather than its value.
	OfKey bool
}

func (p Mistake) String() string {
	message := p.Cause
	if path := p.Place.String(); path != "" {
		message = path + ": " + message
	}
	if p.Hint != "" {
		message += "; " + p.Hint
	}
	return message
}

// Check returns the problems of an object as decoded from YAML or JSON, in the order
// of its sorted fields. isAkri reports whether the kind is one of Akri's; objects of
// other kinds are not checked.
func Check(object map[string]any) (problems []Mistake, isAkri bool) {
	k, problem, isAkri := find(object)
	if !isAkri || problem != nil {
		if problem != nil {
			problems = append(problems, *problem)
		}
		return problems, isAkri
	}
	c := &checker{}
	c.value(k.schema, object)
	return c.problems, true
}

// find returns the kind of an object, or the problem with its apiVersion or kind.
func find(object map[string]any) (kind, *Mistake, bool) {
	name, _ := object["kind"].(string)
	apiVersion, ok := object["apiVersion"].(string)
	group, _, _ := strings.Cut(apiVersion, "/")
	var names []string
	for _, k := range kinds() {
		if k.name == name && k.apiVersion == apiVersion {
			return k, nil, true
		}
		names = append(names, k.name)
	}
	ourKind := slices.Contains(names, name)
	version := kinds()[0].apiVersion
	ourGroup, _, _ := strings.Cut(version, "/")
	switch {
	case group == ourGroup && ourKind:
		return kind{}, &Mistake{Place: path("apiVersion"), Cause: fmt.Sprintf("%s has no version %q", name, apiVersion),
			Hint: "use apiVersion: " + version}, true
	case group == ourGroup:
		cause := fmt.Sprintf("unknown kind %q in %s", name, version)
		if name == "" {
			cause = "kind is missing"
		}
		return kind{}, &Mistake{Place: path("kind"), Cause: cause, Hint: "use kind: " + cmp.Or(templating.Nearest(name, names), names[0])}, true
	case ourKind && (!ok || templating.Nearest(apiVersion, []string{version}) != ""):
		cause := fmt.Sprintf("unknown apiVersion %q", apiVersion)
		if !ok {
			cause = "apiVersion is missing"
		}
		return kind{}, &Mistake{Place: path("apiVersion"), Cause: cause, Hint: "use apiVersion: " + version}, true
	}
	return kind{}, nil, false
}

func path(keys ...string) templating.Path {
	var p templating.Path
	for _, key := range keys {
		p = append(p, templating.Key(key))
	}
	return p
}

// checker walks an object and collects its problems.
type checker struct {
	path     templating.Path
	problems []Mistake
}

func (c *checker) report(hint, format string, args ...any) {
	c.problems = append(c.problems, Mistake{Place: slices.Clone(c.path), Cause: fmt.Sprintf(format, args...), Hint: hint})
}

// reportKey reports that the key at the end of the path is unknown.
func (c *checker) reportKey(key, hint string) {
	c.problems = append(c.problems, Mistake{Place: slices.Clone(c.path), Cause: fmt.Sprintf("unknown field %q", key), Hint: hint, OfKey: true})
}

// at runs check one step deeper in the object.
func (c *checker) at(step templating.Step, check func()) {
	c.path = append(c.path, step)
	check()
	c.path = c.path[:len(c.path)-1]
}

func (c *checker) value(n *node, value any) {
	if value == nil {
		// The API server drops null values of fields that are not nullable.
		return
	}
	before := len(c.problems)
	if n.IntOrString {
		value = c.intOrString(value)
	}
	switch n.Type {
	case "object":
		c.object(n, value)
	case "array":
		c.list(n, value)
	case "string":
		c.str(n, value)
	case "integer", "number":
		c.number(n, value)
	case "boolean":
		if _, ok := value.(bool); !ok {
			c.report("use true or false without quotes", "must be true or false, not %s", describe(value))
		}
	}
	if len(n.Enum) > 0 && !slices.Contains(n.Enum, value) {
		c.report("use one of "+strings.Trim(fmt.Sprint(n.Enum), "[]"), "%s is not supported", describe(value))
	}
	if valid := len(c.problems) == before; valid || n.Type == "object" {
		c.rules(n, value, valid)
	}
}

func (c *checker) object(n *node, value any) {
	fields, ok := value.(map[string]any)
	if !ok {
		hint := "put its fields below it, indented"
		if len(n.Properties) > 0 {
			hint += ": " + strings.Join(n.fields(), ", ")
		}
		c.report(hint, "must be a map, not %s", describe(value))
		return
	}
	for _, key := range n.Required {
		if fields[key] == nil && !misspelled(n, fields, key) {
			c.missing(n, key)
		}
	}
	if n.MaxProperties != nil && len(fields) > *n.MaxProperties {
		c.report("", "has %d entries; the maximum is %d", len(fields), *n.MaxProperties)
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		c.at(templating.Key(key), func() {
			switch child := n.Properties[key]; {
			case child != nil:
				c.value(child, fields[key])
			case n.AdditionalProperties != nil:
				c.value(n.AdditionalProperties, fields[key])
			case !n.PreserveUnknown && !(len(c.path) == 1 && key == "status"):
				c.unknown(n, key)
			}
		})
	}
}

// misspelled reports whether an unknown field is probably meant to be key, or was called
// so before. It is reported only once, as unknown.
func misspelled(n *node, fields map[string]any, key string) bool {
	for name := range fields {
		meant := former[name].successor == key || templating.Nearest(name, n.fields()) == key
		if meant && n.Properties[name] == nil && !n.PreserveUnknown {
			return true
		}
	}
	return false
}

// former are fields that the spec of a Configuration had in older versions of Akri, with
// the field that took the place of each, and the remedy.
var former = map[string]struct{ successor, hint string }{
	"protocol":      {"discoveryHandler", "it is discoveryHandler now, and its details are text; kubectl akri convert rewrites the file"},
	"properties":    {"brokerProperties", "rename it to brokerProperties, or let kubectl akri convert rewrite the file"},
	"brokerPodSpec": {"brokerSpec", "put it into brokerSpec, or let kubectl akri convert rewrite the file"},
	"units":         {"", "remove it: it never had an effect"},
}

func (c *checker) missing(n *node, key string) {
	hint := "add " + key + ":"
	switch child := n.Properties[key]; {
	case key == "discoveryHandler":
		hint = "add discoveryHandler: with name: NAME below it, the handler that finds the devices; debugEcho needs no hardware"
	case child != nil && child.Type == "object":
		hint += " with its fields below it"
	default:
		hint += " " + strings.ToUpper(key)
	}
	c.report(hint, "%s is missing", key)
}

func (c *checker) unknown(n *node, key string) {
	if old, ok := former[key]; ok && n == kinds()[0].schema.Properties["spec"] {
		c.problems = append(c.problems, Mistake{Place: slices.Clone(c.path), Cause: key + " is a field of older versions of Akri", Hint: old.hint,
			OfKey: true})
		return
	}
	hint := "known fields: " + strings.Join(n.fields(), ", ")
	if near := templating.Nearest(key, n.fields()); near != "" {
		hint = "did you mean " + near + "?"
	} else if parent := findField(key); parent != "" && parent != c.path.String() {
		hint = key + " belongs to " + parent + ": correct the indentation"
	}
	c.reportKey(key, hint)
}

// findField returns the path of the map in which a Configuration has a field, or "".
func findField(key string) string {
	spec := kinds()[0].schema.Properties["spec"]
	if spec.Properties[key] != nil {
		return "spec"
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Properties)) {
		if child := spec.Properties[name]; child.Type == "object" && child.Properties[key] != nil {
			return "spec." + name
		}
	}
	return ""
}

func (c *checker) list(n *node, value any) {
	elements, ok := value.([]any)
	if !ok {
		hint := "start each element with a dash"
		if _, isMap := value.(map[string]any); isMap {
			hint = "put a dash before its first field"
		}
		c.report(hint, "must be a list, not %s", describe(value))
		return
	}
	if n.MaxItems != nil && len(elements) > *n.MaxItems {
		c.report("use a second Configuration for the rest", "has %d elements; the maximum is %d", len(elements), *n.MaxItems)
	}
	for i, element := range elements {
		c.at(templating.Index(i), func() {
			if element == nil {
				c.report("remove the dash or add the element", "the element is empty")
				return
			}
			c.value(n.Items, element)
		})
	}
}

func (c *checker) str(n *node, value any) {
	s, ok := value.(string)
	if !ok {
		hint := ""
		switch value.(type) {
		case bool, int64, float64:
			hint = fmt.Sprintf("quote it: %q", fmt.Sprint(value))
		case map[string]any, []any:
			hint = "write a single string; after key: |, the indented lines below form one"
		}
		c.report(hint, "must be a string, not %s", describe(value))
		return
	}
	length := utf8.RuneCountInString(s)
	switch {
	case n.MinLength != nil && length < *n.MinLength:
		c.report("add a value", "must not be empty")
	case n.MaxLength != nil && length > *n.MaxLength:
		c.report("shorten it", "has %d characters; the maximum is %d", length, *n.MaxLength)
	case n.Pattern != "" && !matches(n.Pattern, s):
		cause := fmt.Sprintf("%q does not match the pattern %s", s, n.Pattern)
		message := patternMessages[n.Pattern]
		if message.cause != "" {
			cause = fmt.Sprintf("%q %s", s, message.cause)
		}
		c.report(message.hint, "%s", cause)
	}
}

// patternMessages explains the patterns of the definitions.
var patternMessages = map[string]struct{ cause, hint string }{
	`^[_A-Za-z][_A-Za-z0-9]*$`: {"is not a valid property name", "use letters, digits and _, and do not start with a digit"},
	`^[^{}]+$`:                 {"contains braces, but this field does not allow expressions", "remove the expression"},
	`^[^{}]*$`:                 {"contains braces, but this field does not allow expressions", "remove the expression"},
}

func matches(pattern, value string) bool {
	compiled, err := regexp.Compile(pattern)
	return err != nil || compiled.MatchString(value)
}

func (c *checker) number(n *node, value any) {
	var number float64
	switch v := value.(type) {
	case int64:
		number = float64(v)
	case float64:
		number = v
	default:
		hint := "use digits without quotes"
		if s, ok := value.(string); ok && strings.Contains(s, "{{") {
			hint = "use a number: expressions are only allowed in broker resources"
		}
		c.report(hint, "must be a number, not %s", describe(value))
		return
	}
	switch {
	case n.Type == "integer" && number != math.Trunc(number):
		c.report("use digits only", "must be an integer, not %v", value)
	case n.Minimum != nil && number < *n.Minimum:
		c.report(fmt.Sprintf("the minimum is %v", *n.Minimum), "%v is too small", value)
	case n.Maximum != nil && number > *n.Maximum:
		c.report(fmt.Sprintf("the maximum is %v", *n.Maximum), "%v is too large", value)
	case n.Format == "int32" && (number < math.MinInt32 || number > math.MaxInt32):
		c.report("", "%v does not fit into 32 bits", value)
	}
}

// intOrString checks a field such as maxUnavailable, which is 1 or 10%. It returns
// the value in the form that rules expect.
func (c *checker) intOrString(value any) any {
	switch v := value.(type) {
	case int64, string:
		return v
	case float64:
		if v == math.Trunc(v) {
			return int64(v)
		}
	}
	c.report("use digits without quotes, or a string", "must be an integer or a string, not %s", describe(value))
	return value
}

// maxValueBytes limits the part of a value that a message quotes.
const maxValueBytes = 40

// describe returns a value with its type, for messages.
func describe(value any) string {
	switch v := value.(type) {
	case string:
		return fmt.Sprintf("the string %q", text.Truncate(v, maxValueBytes))
	case bool:
		return fmt.Sprint(v)
	case int64, float64:
		return fmt.Sprintf("the number %v", v)
	case []any:
		return "a list"
	case map[string]any:
		return "a map"
	}
	return "empty"
}
