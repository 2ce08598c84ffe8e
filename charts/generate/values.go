package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A value is a key of the chart's values with what its comment says.
type value struct {
	path        []string
	kind        string // the type in parentheses, such as int|string
	description string
	def         any
	nullable    bool
}

// The comment of a key: "# -- (TYPE) DESCRIPTION".
var valueComment = regexp.MustCompile(`(?s)^-- \(([^)]*)\) (.*)$`)

// readValues returns the keys of a file that have such a comment, in order. Those
// without are tables of keys, or are said by infer.
func readValues(file string, infer bool) ([]value, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var values []value
	err = walk(document.Content[0], nil, infer, &values)
	if err != nil {
		err = fmt.Errorf("%s: %w", file, err)
	}
	return values, err
}

func walk(table *yaml.Node, parent []string, infer bool, values *[]value) error {
	for i := 0; i < len(table.Content); i += 2 {
		key, n := table.Content[i], table.Content[i+1]
		path := append(append([]string{}, parent...), key.Value)
		v := value{path: path}
		if err := n.Decode(&v.def); err != nil {
			return err
		}
		if comment := valueComment.FindStringSubmatch(joinComment(key.HeadComment)); comment != nil {
			v.kind, v.description = comment[1], comment[2]
			*values = append(*values, v)
			continue
		}
		switch {
		case n.Kind == yaml.MappingNode && len(n.Content) > 0 && (!infer || key.Value != "resources"):
			if err := walk(n, path, infer, values); err != nil {
				return err
			}
		case infer:
			*values = append(*values, v)
		default:
			return fmt.Errorf("%s: needs a comment: # -- (TYPE) DESCRIPTION", strings.Join(path, "."))
		}
	}
	return nil
}

// joinComment returns the last paragraph of a comment in one line.
func joinComment(comment string) string {
	paragraphs := strings.Split(comment, "\n\n")
	var words []string
	for line := range strings.SplitSeq(paragraphs[len(paragraphs)-1], "\n") {
		words = append(words, strings.TrimSpace(strings.TrimPrefix(line, "#")))
	}
	return strings.Join(words, " ")
}

// A gone key is one of Akri's chart that has no meaning here.
type gone struct {
	Key     string `yaml:"key"`
	Message string `yaml:"message"`
}

// allValues is what the chart's values may contain.
type allValues struct {
	own     []value // values.yaml
	handler []value // of every handler
	akri    []value // of Akri's chart
	gone    []gone
}

func readAll(chart string) (*allValues, error) {
	var all allValues
	var err error
	if all.handler, err = readValues(filepath.Join(chart, "files", "handler.yaml"), false); err != nil {
		return nil, err
	}
	own, err := readValues(filepath.Join(chart, "values.yaml"), true)
	if err != nil {
		return nil, err
	}
	for _, v := range own {
		if v.kind == "" {
			// A handler's own default of a key that every handler has.
			if err := describe(&v, all.handler); err != nil {
				return nil, err
			}
		}
		all.own = append(all.own, v)
	}
	if all.akri, err = readValues(filepath.Join(chart, "files", "akri.yaml"), false); err != nil {
		return nil, err
	}
	for i := range all.akri {
		all.akri[i].nullable = true
	}
	data, err := os.ReadFile(filepath.Join(chart, "files", "akri-gone.yaml"))
	if err != nil {
		return nil, err
	}
	return &all, yaml.Unmarshal(data, &all.gone)
}

func describe(v *value, handler []value) error {
	for _, h := range handler {
		if v.path[0] == "handlers" && len(v.path) == 3 && v.path[2] == h.path[0] {
			v.kind, v.description = h.kind, h.description
			return nil
		}
	}
	return fmt.Errorf("values.yaml: %s: needs a comment: # -- (TYPE) DESCRIPTION", strings.Join(v.path, "."))
}

func (v *value) defaultText() string {
	data, err := json.Marshal(v.def)
	if err != nil {
		return fmt.Sprint(v.def)
	}
	return string(data)
}
