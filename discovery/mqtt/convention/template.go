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

// maxTemplateBytes bounds a template. It stays in memory.
const maxTemplateBytes = 512

// template is a template of Home Assistant for the availability of an entity: a value, or a text
// that depends on a condition.
type template struct {
	// path is where the value is in the payload's JSON, if json is set; otherwise, it is the payload.
	json    bool
	path    string
	filters []string
	// conditional says that the template is a condition: the operator may be empty for the value
	// itself, and then and otherwise are the texts.
	conditional, negated bool
	operator             string
	literal              gjson.Result
	then, otherwise      string
	// bytes is the size of the template.
	bytes int
}

// literalForm matches a literal in a template.
const literalForm = `('[^']*'|"[^"]*"|-?\d+(?:\.\d+)?|True|true|False|false|None|none)`

var (
	// templateForm matches the templates that are supported: a value with filters, a comparison,
	// and a text that depends on one of these. blockForm matches the other way to write the latter.
	templateForm = regexp.MustCompile(`^\{\{-?\s*(?:` + literalForm + `\s+if\s+)?` +
		`\(?\s*(not\s+)?\(?\s*value(_json)?((?:\.[A-Za-z_]\w*|\[(?:\d+|'[^']+'|"[^"]+")\])*)` +
		`((?:\s*\|\s*(?:int|float|lower|upper)(?:\(\s*0?\s*\))?)*)\s*\)?` +
		`(?:\s*(==|!=|<=|>=|<|>)\s*` + literalForm + `|\s+(is\s+defined))?\s*\)?(?:\s+else\s+` + literalForm + `)?\s*-?\}\}$`)
	blockForm = regexp.MustCompile(
		`^\{%-?\s*if\s+([^{}]*?)\s*-?%\}\s*([^{}']*?)\s*(?:\{%-?\s*else\s*-?%\}\s*([^{}']*?)\s*)?\{%-?\s*endif\s*-?%\}$`)
	pathElements = regexp.MustCompile(`\.(\w+)|\[(\d+)\]|\['([^']+)'\]|\["([^"]+)"\]`)
	filterNames  = regexp.MustCompile(`[a-z]+`)
)

// parseTemplate parses a template; an empty one is nil.
func parseTemplate(text string) (parsed *template, supported bool) {
	if text == "" {
		return nil, true
	}
	found := templateForm.FindStringSubmatch(blockForm.ReplaceAllString(strings.TrimSpace(text), "{{ '$2' if $1 else '$3' }}"))
	if len(text) > maxTemplateBytes || found == nil || found[3] == "" && found[4] != "" || found[1] == "" && found[9] != "" {
		return nil, false
	}
	t := &template{
		json: found[3] != "", filters: filterNames.FindAllString(found[5], -1), negated: found[2] != "", operator: found[6] + found[8],
		literal: literal(found[7]), then: pythonText(literal(found[1])), otherwise: pythonText(literal(found[9])), bytes: len(text),
	}
	t.conditional = found[1] != "" || t.negated || t.operator != ""
	if found[1] == "" { // the result of a comparison
		t.then, t.otherwise = "True", "False"
	}
	var path []string
	for _, element := range pathElements.FindAllStringSubmatch(found[4], -1) {
		path = append(path, cmp.Or(element[1:]...))
	}
	t.path = jsonvalue.Join(path...)
	return t, true
}

// literal returns the value of a literal; that of none is null.
func literal(text string) gjson.Result {
	if text != "" && (text[0] == '\'' || text[0] == '"') {
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
		switch filter {
		case "lower":
			found = gjson.Result{Type: gjson.String, Str: strings.ToLower(pythonText(found))}
		case "upper":
			found = gjson.Result{Type: gjson.String, Str: strings.ToUpper(pythonText(found))}
		case "int":
			found = gjson.Parse(strconv.FormatFloat(math.Trunc(found.Float()), 'f', -1, 64))
		case "float":
			found = gjson.Parse(strconv.FormatFloat(found.Float(), 'f', -1, 64))
		}
	}
	switch {
	case !t.conditional:
		return strings.TrimSpace(pythonText(found))
	case t.holds(found) != t.negated:
		return t.then
	}
	return t.otherwise
}

// holds reports whether the condition without its negation is true, as in Python.
func (t *template) holds(found gjson.Result) bool {
	numeric := func(of gjson.Result) bool { return of.Type == gjson.Number || of.IsBool() }
	order, alike := strings.Compare(found.Str, t.literal.Str), found.Type == t.literal.Type
	if numeric(found) && numeric(t.literal) {
		order, alike = cmp.Compare(found.Float(), t.literal.Float()), true
	}
	switch t.operator {
	case "":
		return numeric(found) && found.Float() != 0 || found.Str != "" || found.Type == gjson.JSON && len(found.Raw) > len("[]")
	case "==", "<", "<=", ">", ">=":
		return alike && strings.Contains(t.operator, "<=>"[order+1:order+2])
	case "!=":
		return !alike || order != 0
	}
	return found.Exists() // is defined
}

// pythonText returns the text that Home Assistant makes of a value; "" for a list or an object.
func pythonText(of gjson.Result) string {
	switch {
	case of.IsBool():
		return strings.ToUpper(of.Raw[:1]) + of.Raw[1:]
	case of.Type == gjson.Number && strings.ContainsAny(of.Raw, ".eE"):
		text := strconv.FormatFloat(of.Num, 'f', -1, 64)
		if !strings.Contains(text, ".") {
			text += ".0"
		}
		return text
	}
	return scalar(of)
}
