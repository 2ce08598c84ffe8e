package schema

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"akri.sh/akri/templating"
)

// Problem is one thing that is wrong with an object.
type Problem struct {
	Path  templating.Path // of the field, or of what lacks it
	Cause string          // lower case
	Hint  string          // what to write instead; may be empty
	// OfKey says that the trouble is the key and not its value.
	OfKey bool
}

func (p Problem) String() string {
	text := p.Cause
	if path := p.Path.String(); path != "" {
		text = path + ": " + text
	}
	if p.Hint != "" {
		text += "; " + p.Hint
	}
	return text
}

// Check is what is wrong with an object of one of Akri's kinds, as decoded from
// YAML or JSON, in the order of its sorted fields. ours is false for an object
// that has nothing to do with Akri, which is then not looked at.
func Check(object map[string]any) (problems []Problem, ours bool) {
	k, problem, ours := find(object)
	if !ours || problem != nil {
		if problem != nil {
			problems = append(problems, *problem)
		}
		return problems, ours
	}
	c := &checker{}
	c.value(k.schema, object)
	return c.problems, true
}

// find is the kind of an object, or what is wrong with apiVersion and kind.
func find(object map[string]any) (kind, *Problem, bool) {
	name, _ := object["kind"].(string)
	apiVersion, isText := object["apiVersion"].(string)
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
		return kind{}, &Problem{Path: path("apiVersion"), Cause: fmt.Sprintf("there is no version %q of %s", apiVersion, name), Hint: "write apiVersion: " + version}, true
	case group == ourGroup:
		cause := fmt.Sprintf("there is no kind %q in %s", name, version)
		if name == "" {
			cause = "the kind is missing"
		}
		return kind{}, &Problem{Path: path("kind"), Cause: cause, Hint: "write kind: " + cmpOr(templating.Nearest(name, names), names[0])}, true
	case ourKind && (!isText || templating.Nearest(apiVersion, []string{version}) != ""):
		cause := fmt.Sprintf("there is no apiVersion %q", apiVersion)
		if !isText {
			cause = "apiVersion is missing"
		}
		return kind{}, &Problem{Path: path("apiVersion"), Cause: cause, Hint: "write apiVersion: " + version}, true
	}
	return kind{}, nil, false
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func path(keys ...string) templating.Path {
	var p templating.Path
	for _, key := range keys {
		p = append(p, templating.Key(key))
	}
	return p
}

// checker walks over an object and remembers where it is.
type checker struct {
	path     templating.Path
	problems []Problem
}

func (c *checker) report(hint, format string, args ...any) {
	c.problems = append(c.problems, Problem{Path: slices.Clone(c.path), Cause: fmt.Sprintf(format, args...), Hint: hint})
}

// at checks a part of the object.
func (c *checker) at(step templating.Step, check func()) {
	c.path = append(c.path, step)
	check()
	c.path = c.path[:len(c.path)-1]
}

func (c *checker) value(n *node, value any) {
	if value == nil {
		// The API server drops fields that are null where null has no meaning.
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
		c.text(n, value)
	case "integer", "number":
		c.number(n, value)
	case "boolean":
		if _, is := value.(bool); !is {
			c.report("write true or false, without quotes", "this must be true or false, not %s", describe(value))
		}
	}
	if len(n.Enum) > 0 && !slices.Contains(n.Enum, value) {
		c.report("write one of "+strings.Trim(fmt.Sprint(n.Enum), "[]"), "%s is not a value of this field", describe(value))
	}
	if len(c.problems) == before || n.Type == "object" {
		c.rules(n, value)
	}
}

func (c *checker) object(n *node, value any) {
	fields, is := value.(map[string]any)
	if !is {
		hint := "write its fields indented below it"
		if len(n.Properties) > 0 {
			hint += ": " + strings.Join(n.fields(), ", ")
		}
		c.report(hint, "this must be a map of fields, not %s", describe(value))
		return
	}
	for _, key := range n.Required {
		if fields[key] == nil && !misspelt(n, fields, key) {
			c.missing(n, key)
		}
	}
	if n.MaxProperties != nil && len(fields) > *n.MaxProperties {
		c.report("", "this has %d entries, and %d is the most", len(fields), *n.MaxProperties)
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

// misspelt reports that an unknown field was probably meant to be key: it is told
// once.
func misspelt(n *node, fields map[string]any, key string) bool {
	for name := range fields {
		if n.Properties[name] == nil && !n.PreserveUnknown && templating.Nearest(name, n.fields()) == key {
			return true
		}
	}
	return false
}

func (c *checker) missing(n *node, key string) {
	hint := "write " + key + ":"
	switch child := n.Properties[key]; {
	case key == "discoveryHandler":
		hint = "write discoveryHandler: and below it name: NAME, which says what finds the devices; debugEcho needs no hardware"
	case child != nil && child.Type == "object":
		hint += " and its fields below it"
	default:
		hint += " " + strings.ToUpper(key)
	}
	c.report(hint, "%s is missing", key)
}

func (c *checker) unknown(n *node, key string) {
	hint := "fields here are " + strings.Join(n.fields(), ", ")
	if near := templating.Nearest(key, n.fields()); near != "" {
		hint = "did you mean " + near + "?"
	} else if where := elsewhere(key); where != "" && where != c.path.String() {
		hint = key + " belongs to " + where + ": correct the indentation"
	}
	c.problems = append(c.problems, Problem{Path: slices.Clone(c.path), Cause: fmt.Sprintf("there is no field %q here", key), Hint: hint, OfKey: true})
}

// elsewhere is where a Configuration has a field of that name.
func elsewhere(key string) string {
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
	elements, is := value.([]any)
	if !is {
		hint := "begin each element with a dash"
		if _, isMap := value.(map[string]any); isMap {
			hint = "put a dash before its first field"
		}
		c.report(hint, "this must be a list, not %s", describe(value))
		return
	}
	if n.MaxItems != nil && len(elements) > *n.MaxItems {
		c.report("use a second Configuration for the rest", "the list has %d elements, and %d is the most", len(elements), *n.MaxItems)
	}
	for i, element := range elements {
		c.at(templating.Index(i), func() {
			if element == nil {
				c.report("remove the dash, or write the element after it", "the element is empty")
				return
			}
			c.value(n.Items, element)
		})
	}
}

func (c *checker) text(n *node, value any) {
	text, is := value.(string)
	if !is {
		hint := ""
		switch value.(type) {
		case bool, int64, float64:
			hint = fmt.Sprintf("put it in quotes: %q", fmt.Sprint(value))
		case map[string]any, []any:
			hint = "write it as one text; a | after the colon makes text of the indented lines below"
		}
		c.report(hint, "this must be text, not %s", describe(value))
		return
	}
	length := utf8.RuneCountInString(text)
	switch {
	case n.MinLength != nil && length < *n.MinLength:
		c.report("write a value", "this must not be empty")
	case n.MaxLength != nil && length > *n.MaxLength:
		c.report("shorten it", "this has %d characters, and %d is the most", length, *n.MaxLength)
	case n.Pattern != "" && !matches(n.Pattern, text):
		cause := fmt.Sprintf("%q does not have the form %s", text, n.Pattern)
		form := forms[n.Pattern]
		if form.cause != "" {
			cause = fmt.Sprintf("%q %s", text, form.cause)
		}
		c.report(form.hint, "%s", cause)
	}
}

// forms says what the patterns of our definitions mean.
var forms = map[string]struct{ cause, hint string }{
	`^[_A-Za-z][_A-Za-z0-9]*$`: {"is not a name of a property", "write letters, digits and _, beginning with a letter or _"},
	`^[^{}]+$`:                 {"holds braces, and this field takes no expression", "write it without expressions"},
	`^[^{}]*$`:                 {"holds braces, and this field takes no expression", "write it without expressions"},
}

func matches(pattern, text string) bool {
	compiled, err := regexp.Compile(pattern)
	return err != nil || compiled.MatchString(text)
}

func (c *checker) number(n *node, value any) {
	var number float64
	switch v := value.(type) {
	case int64:
		number = float64(v)
	case float64:
		number = v
	default:
		hint := "write digits, without quotes"
		if text, is := value.(string); is && strings.Contains(text, "{{") {
			hint = "write a number: expressions are for broker resources only"
		}
		c.report(hint, "this must be a number, not %s", describe(value))
		return
	}
	switch {
	case n.Type == "integer" && number != math.Trunc(number):
		c.report("write digits only", "this must be a whole number, not %v", value)
	case n.Minimum != nil && number < *n.Minimum:
		c.report(fmt.Sprintf("write %v or more", *n.Minimum), "%v is too small", value)
	case n.Maximum != nil && number > *n.Maximum:
		c.report(fmt.Sprintf("write %v or less", *n.Maximum), "%v is too large", value)
	case n.Format == "int32" && (number < math.MinInt32 || number > math.MaxInt32):
		c.report("", "%v does not fit into 32 bits", value)
	}
}

// intOrString is for fields such as maxUnavailable: 1, or 10%. It returns the
// value as rules expect it.
func (c *checker) intOrString(value any) any {
	switch v := value.(type) {
	case int64, string:
		return v
	case float64:
		if v == math.Trunc(v) {
			return int64(v)
		}
	}
	c.report("write digits without quotes, or text", "this must be a whole number or text, not %s", describe(value))
	return value
}

// describe says what was found, as a person would.
func describe(value any) string {
	switch v := value.(type) {
	case string:
		if r := []rune(v); len(r) > 40 {
			v = string(r[:40]) + "…"
		}
		return fmt.Sprintf("the text %q", v)
	case bool:
		return fmt.Sprint(v)
	case int64, float64:
		return fmt.Sprintf("the number %v", v)
	case []any:
		return "a list"
	case map[string]any:
		return "a map of fields"
	}
	return "empty"
}
