package convention

import (
	"cmp"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"akri.sh/akri/discovery/internal/jsonvalue"
)

// template is a template of Home Assistant for the availability of an entity: a value, or a text
// that depends on a condition.
type template struct {
	// path is where the value is in the payload's JSON, if json is set; otherwise, it is the payload.
	json bool
	path string
	// filters are applied to the value.
	filters []string
	// choice is nil for a template that is the value.
	choice *choice
	// bytes is the size of the template.
	bytes int
}

// choice is a condition, and the texts if it is true and if it is not.
type choice struct {
	negated bool
	// operator is empty if the value itself is the condition.
	operator        string
	literal         gjson.Result
	then, otherwise string
}

// maxTemplateBytes bounds a template. It stays in memory.
const maxTemplateBytes = 512

// The parts of templates.
const (
	operandForm   = `value(_json)?((?:\.[A-Za-z_]\w*|\[(?:\d+|'[^']+'|"[^"]+")\])*)((?:\s*\|\s*(?:int|float|lower|upper)(?:\(\s*0?\s*\))?)*)`
	literalForm   = `('[^']*'|"[^"]*"|-?\d+(?:\.\d+)?|[Tt]rue|[Ff]alse|[Nn]one)`
	conditionForm = `\(?\s*(not\s+)?` + operandForm + `(?:\s*(==|!=|<=|>=|<|>)\s*` + literalForm + `|\s+(is\s+defined))?\s*\)?`
)

// templateForms are the templates that are supported.
var templateForms = []*regexp.Regexp{
	regexp.MustCompile(`^\{\{-?\s*` + operandForm + `\s*-?\}\}$`),
	regexp.MustCompile(`^\{\{-?\s*` + literalForm + `\s+if\s+` + conditionForm + `(?:\s+else\s+` + literalForm + `)?\s*-?\}\}$`),
	regexp.MustCompile(`^\{%-?\s*if\s+` + conditionForm + `\s*-?%\}([^{}]*)(?:\{%-?\s*else\s*-?%\}([^{}]*))?\{%-?\s*endif\s*-?%\}$`),
}

// pathElements matches the elements of a path in a template.
var pathElements = regexp.MustCompile(`\.(\w+)|\[(\d+)\]|\['([^']+)'\]|\["([^"]+)"\]`)

// filterNames matches the names of filters.
var filterNames = regexp.MustCompile(`[a-z]+`)

// parseTemplate parses a template; an empty one is nil.
func parseTemplate(text string) (parsed *template, unsupported bool) {
	if text == "" {
		return nil, false
	}
	if len(text) > maxTemplateBytes {
		return nil, true
	}
	trimmed := strings.TrimSpace(text)
	if found := templateForms[0].FindStringSubmatch(trimmed); found != nil {
		return operand(found[1:], len(text))
	}
	if found := templateForms[1].FindStringSubmatch(trimmed); found != nil {
		return conditional(found[2:], pythonText(literal(found[1])), pythonText(literal(found[9])), len(text))
	}
	if found := templateForms[2].FindStringSubmatch(trimmed); found != nil {
		return conditional(found[1:], strings.TrimSpace(found[8]), strings.TrimSpace(found[9]), len(text))
	}
	return nil, true
}

// operand returns the template of an operand's parts.
func operand(parts []string, bytes int) (parsed *template, unsupported bool) {
	parsed = &template{json: parts[0] != "", filters: filterNames.FindAllString(parts[2], -1), bytes: bytes}
	var path []string
	for _, element := range pathElements.FindAllStringSubmatch(parts[1], -1) {
		path = append(path, cmp.Or(element[1:]...))
	}
	parsed.path = jsonvalue.Join(path...)
	return parsed, !parsed.json && parsed.path != ""
}

// conditional returns the template of a condition's parts.
func conditional(parts []string, then, otherwise string, bytes int) (parsed *template, unsupported bool) {
	parsed, unsupported = operand(parts[1:], bytes)
	parsed.choice = &choice{
		negated: parts[0] != "", operator: cmp.Or(parts[4], parts[6]), literal: literal(parts[5]), then: then, otherwise: otherwise,
	}
	return parsed, unsupported
}

// literal returns the value of a literal; that of none is null.
func literal(text string) gjson.Result {
	switch {
	case text == "":
		return gjson.Result{}
	case text[0] == '\'' || text[0] == '"':
		return gjson.Result{Type: gjson.String, Str: text[1 : len(text)-1]}
	}
	return gjson.Parse(strings.ToLower(text))
}

// render returns the text for a payload.
func (t *template) render(payload string) string {
	if t == nil {
		return payload
	}
	found := gjson.Result{Type: gjson.String, Str: payload}
	if t.json {
		document, _ := jsonvalue.Parse([]byte(payload)) // what is not JSON has no values
		found = jsonvalue.Lookup(document, t.path)
	}
	for _, filter := range t.filters {
		text := pythonText(found)
		switch filter {
		case "lower":
			found = gjson.Result{Type: gjson.String, Str: strings.ToLower(text)}
		case "upper":
			found = gjson.Result{Type: gjson.String, Str: strings.ToUpper(text)}
		default:
			number := found.Float() // of a Boolean too
			if filter == "int" {
				number = math.Trunc(number)
			}
			found = gjson.Parse(strconv.FormatFloat(number, 'f', -1, 64))
		}
	}
	switch {
	case t.choice == nil:
		return pythonText(found)
	case t.choice.holds(found) != t.choice.negated:
		return t.choice.then
	}
	return t.choice.otherwise
}

// holds reports whether the condition without its negation is true, as in Python.
func (c *choice) holds(found gjson.Result) bool {
	numeric := func(of gjson.Result) bool { return of.Type == gjson.Number || of.IsBool() }
	order := strings.Compare(found.Str, c.literal.Str)
	comparable := found.Type == c.literal.Type
	if numeric(found) && numeric(c.literal) {
		order, comparable = cmp.Compare(found.Float(), c.literal.Float()), true
	}
	switch c.operator {
	case "":
		return numeric(found) && found.Float() != 0 || found.Str != "" || found.IsObject() && found.Raw != "{}" || found.IsArray() && found.Raw != "[]"
	case "==":
		return comparable && order == 0
	case "!=":
		return !comparable || order != 0
	case "<":
		return comparable && order < 0
	case "<=":
		return comparable && order <= 0
	case ">":
		return comparable && order > 0
	case ">=":
		return comparable && order >= 0
	}
	return found.Exists() // is defined
}

// pythonText returns the text that Home Assistant makes of a value; "" for a list or an object.
func pythonText(of gjson.Result) string {
	switch {
	case of.Type == gjson.True:
		return "True"
	case of.Type == gjson.False:
		return "False"
	case of.Type == gjson.Number && strings.ContainsAny(of.Raw, ".eE"):
		text := strconv.FormatFloat(of.Num, 'f', -1, 64)
		if !strings.Contains(text, ".") {
			text += ".0"
		}
		return text
	}
	return scalar(of)
}
