package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
	yamlv3 "sigs.k8s.io/yaml/goyaml.v3"

	"akri.sh/akri/internal/finding"
	"akri.sh/akri/templating"
)

// ErrNotObject reports a document that is not an object, such as a list.
var ErrNotObject = errors.New("this is not an object")

// SyntaxError is the reason why a file cannot be parsed.
type SyntaxError struct {
	File string
	Line int // from 1; 0 if it is not known
	Err  error
}

// Error returns FILE:LINE and the reason.
func (e *SyntaxError) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Err.Error()
	}
	return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
}

// Unwrap returns the reason.
func (e *SyntaxError) Unwrap() error { return e.Err }

// Document is one object of a YAML file.
type Document struct {
	file   string
	before int      // lines of the file before the document
	lines  []string // of the document
	root   *yamlv3.Node
	object map[string]any
}

// Parse parses all documents of a file. It omits empty ones and returns the items of
// a List as documents. Invalid YAML, documents that are not objects and duplicate keys
// are errors, each a [SyntaxError].
func Parse(file string, data []byte) ([]*Document, error) {
	if json.Valid(data) {
		data = surrogates.ReplaceAllFunc(data, func(pair []byte) []byte {
			var character string
			_ = json.Unmarshal([]byte(`"`+string(pair)+`"`), &character) // the pattern matches nothing else
			return []byte(character)
		})
	}
	var documents []*Document
	before := 0
	for _, part := range Split(data) {
		d, err := parse(file, before, part)
		if err != nil {
			return nil, err
		}
		if d != nil {
			documents = append(documents, d.items()...)
		}
		before += bytes.Count(part, []byte("\n"))
	}
	return documents, nil
}

// surrogates matches how JSON escapes a character such as an emoji. YAML has no such escape.
var surrogates = regexp.MustCompile(`(?i)\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}`)

// Split splits a file before each line that begins with ---.
func Split(data []byte) [][]byte {
	var parts [][]byte
	start := 0
	for at := 0; at < len(data); {
		end := bytes.IndexByte(data[at:], '\n') + 1
		if end == 0 {
			end = len(data) - at
		}
		if at > start && isSeparator(data[at:at+end]) {
			parts = append(parts, data[start:at])
			start = at
		}
		at += end
	}
	return append(parts, data[start:])
}

// isSeparator reports whether a line is --- or begins with it and white space.
func isSeparator(line []byte) bool {
	after, found := bytes.CutPrefix(line, []byte("---"))
	return found && len(bytes.TrimLeft(after, " \t\r\n")) < len(after)
}

func parse(file string, before int, data []byte) (*Document, error) {
	d := &Document{file: file, before: before, lines: strings.Split(string(data), "\n")}
	var root yamlv3.Node
	asJSON, err := yaml.YAMLToJSON(data)
	if err == nil { // YAMLToJSONStrict takes a key after a merge key (<<) for a second one
		err = yamlv3.Unmarshal(data, &root)
	}
	if err == nil {
		err = root.Decode(new(any)) // finds keys that are set twice
	}
	if err != nil {
		return nil, syntaxError(file, before, err)
	}
	var value any
	if err := utiljson.Unmarshal(asJSON, &value); err != nil {
		return nil, &SyntaxError{File: file, Err: err}
	}
	if value == nil {
		return nil, nil
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, &SyntaxError{File: file, Line: before + 1, Err: ErrNotObject}
	}
	d.object = object
	if len(root.Content) > 0 {
		d.root = root.Content[0]
	}
	return d, nil
}

// items returns the elements of a List, as kubectl get prints it, or the document
// itself.
func (d *Document) items() []*Document {
	kind, _ := d.object["kind"].(string)
	elements, ok := d.object["items"].([]any)
	if !ok || !strings.HasSuffix(kind, "List") {
		return []*Document{d}
	}
	_, list := child(d.root, templating.Key("items"))
	documents := make([]*Document, 0, len(elements))
	for i, element := range elements {
		object, ok := element.(map[string]any)
		_, node := child(list, templating.Index(i))
		if !ok || node == nil {
			return []*Document{d}
		}
		documents = append(documents, &Document{file: d.file, before: d.before, lines: d.lines, root: node, object: object})
	}
	return documents
}

// syntaxError returns an error of the YAML library for a document that begins after some
// lines of the file. Only the text of the library's errors has the line.
func syntaxError(file string, before int, err error) *SyntaxError {
	message := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
	message = strings.TrimPrefix(message, "yaml: ")
	message = strings.TrimSpace(strings.TrimPrefix(message, "unmarshal errors:"))
	var line int
	if _, scanErr := fmt.Sscanf(message, "line %d:", &line); scanErr != nil {
		return &SyntaxError{File: file, Err: errors.New(message)}
	}
	_, rest, _ := strings.Cut(message, ":")
	rest, _, _ = strings.Cut(rest, " at line ") // of the document, not of the file
	return &SyntaxError{File: file, Line: before + line, Err: errors.New(strings.TrimSpace(rest))}
}

// Object returns the decoded document, which the caller must not change. Whole
// numbers are int64.
func (d *Document) Object() map[string]any { return d.object }

// Locate returns the position of a diagnostic. Prefix leads from the root of the
// document to the template that the diagnostic is about.
func (d *Document) Locate(prefix templating.Path, diagnostic templating.Diagnostic) finding.Position {
	path := append(slices.Clip(prefix), diagnostic.Field...)
	key, value := d.find(path)
	if value == nil {
		return finding.Position{File: d.file, Line: d.before + 1, Column: 1}
	}
	if key != nil && diagnostic.Text == key.Value && (diagnostic.Text != value.Value || diagnostic.Text == "") {
		value = key
	}
	return d.inside(value, diagnostic.Pos)
}

// Finding returns a mistake in the document with its position.
func (d *Document) Finding(mistake templating.Diagnostic) finding.Finding {
	return finding.Finding{Position: d.Locate(nil, mistake), Mistake: mistake.In("").Mistake}
}

// Written returns the text of the scalar at a path as it is written, without quotes, or that
// of its longest existing part; "" for other values.
func (d *Document) Written(path templating.Path) string {
	if _, node := d.find(path); node != nil {
		return node.Value
	}
	return ""
}

// find returns the key and the value at a path, or those of its longest existing
// part.
func (d *Document) find(path templating.Path) (key, value *yamlv3.Node) {
	value = d.root
	for _, step := range path {
		nextKey, next := child(value, step)
		if next == nil {
			break
		}
		key, value = nextKey, next
	}
	return key, value
}

func child(of *yamlv3.Node, step templating.Step) (key, value *yamlv3.Node) {
	if of != nil && of.Kind == yamlv3.AliasNode {
		of = of.Alias
	}
	switch {
	case of == nil:
	case step.IsIndex && of.Kind == yamlv3.SequenceNode && step.Index < len(of.Content):
		return nil, of.Content[step.Index]
	case !step.IsIndex && of.Kind == yamlv3.MappingNode:
		for i := 0; i+1 < len(of.Content); i += 2 {
			if of.Content[i].Value == step.Key {
				return of.Content[i], of.Content[i+1]
			}
		}
	}
	return nil, nil
}

// inside returns the position of a place inside the text of a scalar.
func (d *Document) inside(n *yamlv3.Node, pos templating.Pos) finding.Position {
	start := finding.Position{File: d.file, Line: d.before + n.Line, Column: n.Column}
	if pos.IsZero() || n.Kind != yamlv3.ScalarNode {
		return start
	}
	switch {
	case n.Style&yamlv3.LiteralStyle != 0:
		start.Line += pos.Line
		start.Column = d.indent(n) + pos.Column
	case pos.Line > 1 || n.Style&yamlv3.FoldedStyle != 0:
	case n.Style&yamlv3.DoubleQuotedStyle != 0:
		start.Column += 1 + d.width(n, pos.Column-1, escapeLength)
	case n.Style&yamlv3.SingleQuotedStyle != 0:
		start.Column += 1 + d.width(n, pos.Column-1, quoteLength)
	default:
		start.Column += pos.Column - 1
	}
	return start
}

// indent returns the indentation of a literal block.
func (d *Document) indent(n *yamlv3.Node) int {
	for i := n.Line; i < len(d.lines); i++ {
		if trimmed := strings.TrimLeft(d.lines[i], " "); strings.TrimSpace(trimmed) != "" {
			return len(d.lines[i]) - len(trimmed)
		}
	}
	return 0
}

// width returns the number of characters in the file that represent the first count
// characters of a quoted string. It stops at the end of the line.
func (d *Document) width(n *yamlv3.Node, count int, length func([]rune) int) int {
	line := []rune(d.lines[n.Line-1])
	at := n.Column // the character after the quotation mark, from 0
	for range count {
		if at >= len(line) {
			break
		}
		at += length(line[at:])
	}
	return at - n.Column
}

// escapeLength returns the length of the first character of double-quoted text as
// written.
func escapeLength(text []rune) int {
	if text[0] != '\\' || len(text) < 2 {
		return 1
	}
	switch text[1] {
	case 'x':
		return 4
	case 'u':
		return 6
	case 'U':
		return 10
	}
	return 2
}

// quoteLength is escapeLength for single-quoted text, where a quotation mark takes
// two characters.
func quoteLength(text []rune) int {
	if len(text) > 1 && text[0] == '\'' && text[1] == '\'' {
		return 2
	}
	return 1
}
