package convention

import (
	"cmp"
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
	json bool
	path string
	// conditional says that the value is only compared with the literal, or looked at without an
	// operator, and then and otherwise are the texts.
	conditional     bool
	operator        string
	literal         gjson.Result
	then, otherwise string
	// bytes is the size of the template.
	bytes int
}

// literalForm matches a literal in a template.
const literalForm = `('[^']*'|"[^"]*"|-?\d+(?:\.\d+)?|True|true|False|false|None|none)`

var (
	// templateForm matches the templates that are supported: a value, and a text that depends on it.
	// blockForm matches the other way to write the latter, and parentheses those around a condition.
	templateForm = regexp.MustCompile(`^\{\{-?\s*(?:` + literalForm + `\s+if\s+)?` +
		`value(_json)?((?:\.[A-Za-z_]\w*|\[(?:\d+|'[^']+'|"[^"]+")\])*)` +
		`(?:\s*(==|!=)\s*` + literalForm + `)?(?:\s+else\s+` + literalForm + `)?\s*-?\}\}$`)
	blockForm = regexp.MustCompile(
		`^\{%-?\s*if\s+([^{}]*?)\s*-?%\}\s*([^{}']*?)\s*(?:\{%-?\s*else\s*-?%\}\s*([^{}']*?)\s*)?\{%-?\s*endif\s*-?%\}$`)
	parentheses  = regexp.MustCompile(`(\sif\s+)\(\s*([^()]*?)\s*\)`)
	pathElements = regexp.MustCompile(`\.(\w+)|\[(\d+)\]|\['([^']+)'\]|\["([^"]+)"\]`)
)

// parseTemplate parses a template; an empty one is nil.
func parseTemplate(text string) (parsed *template, supported bool) {
	if text == "" || len(text) > maxTemplateBytes {
		return nil, text == ""
	}
	inline := blockForm.ReplaceAllString(strings.TrimSpace(text), "{{ '$2' if $1 else '$3' }}")
	found := templateForm.FindStringSubmatch(parentheses.ReplaceAllString(inline, "$1$2"))
	if found == nil || found[2] == "" && found[3] != "" || found[1] == "" && found[4]+found[6] != "" {
		return nil, false
	}
	t := &template{
		json: found[2] != "", conditional: found[1] != "", operator: found[4], literal: literal(found[5]),
		then: pythonText(literal(found[1])), otherwise: pythonText(literal(found[6])), bytes: len(text),
	}
	var path []string
	for _, element := range pathElements.FindAllStringSubmatch(found[3], -1) {
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
	switch {
	case !t.conditional:
		return strings.TrimSpace(pythonText(found))
	case t.holds(found):
		return t.then
	}
	return t.otherwise
}

// holds reports whether the condition is true, as in Python.
func (t *template) holds(found gjson.Result) bool {
	numeric := func(of gjson.Result) bool { return of.Type == gjson.Number || of.IsBool() }
	if t.operator == "" {
		return numeric(found) && found.Float() != 0 || found.Str != "" || found.Type == gjson.JSON && len(found.Raw) > len("[]")
	}
	equal := found.Type == t.literal.Type && found.Str == t.literal.Str
	if numeric(found) && numeric(t.literal) {
		equal = found.Float() == t.literal.Float()
	}
	return equal == (t.operator == "==")
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
