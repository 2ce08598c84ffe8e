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
	inherited   bool // another default of a key of all Pods, or of all handlers
}

// The comment of a key: "# -- (TYPE) DESCRIPTION".
var valueComment = regexp.MustCompile(`(?s)^-- \(([^)]*)\) (.*)$`)

// components are the tables that have the keys of the table pods, too.
var components = map[string]bool{"controller": true, "webhook": true, "agent": true, "handlers": true}

// readTable reads a file.
func readTable(file string) (*yaml.Node, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return document.Content[0], nil
}

// walk returns the keys of a table that have such a comment, in order. Those without are tables
// of keys, or keys of components that are inherited.
func walk(table *yaml.Node, parent []string, inherited map[string]value) ([]value, error) {
	var values []value
	for i := 0; i < len(table.Content); i += 2 {
		key, n := table.Content[i], table.Content[i+1]
		v := value{path: append(append([]string{}, parent...), key.Value)}
		if err := n.Decode(&v.def); err != nil {
			return nil, err
		}
		comment := valueComment.FindStringSubmatch(joinComment(key.HeadComment))
		from, found := inherited[key.Value]
		switch {
		case comment != nil:
			v.kind, v.description = comment[1], comment[2]
			values = append(values, v)
		case found && components[v.path[0]] && len(parent) > 0:
			v.kind, v.description, v.inherited = from.kind, from.description, true
			values = append(values, v)
		case n.Kind == yaml.MappingNode && len(n.Content) > 0:
			more, err := walk(n, v.path, inherited)
			if err != nil {
				return nil, err
			}
			values = append(values, more...)
		default:
			return nil, fmt.Errorf("%s: needs a comment: # -- (TYPE) DESCRIPTION", strings.Join(v.path, "."))
		}
	}
	return values, nil
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

// allValues is what the chart's values may contain.
type allValues struct {
	own     []value        // values.yaml
	handler []value        // of every handler
	akri    map[string]any // of Akri's chart
}

func readAll(chart string) (*allValues, error) {
	var all allValues
	file := filepath.Join(chart, "files", "handler.yaml")
	table, err := readTable(file)
	if err != nil {
		return nil, err
	}
	if all.handler, err = walk(table, nil, nil); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	file = filepath.Join(chart, "values.yaml")
	if table, err = readTable(file); err != nil {
		return nil, err
	}
	inherited := map[string]value{}
	for _, h := range all.handler {
		inherited[h.path[0]] = h
	}
	for i, key := range table.Content {
		if key.Value != "pods" {
			continue
		}
		pods, err := walk(table.Content[i+1], nil, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: pods: %w", file, err)
		}
		for _, p := range pods {
			inherited[p.path[0]] = p
		}
	}
	if all.own, err = walk(table, nil, inherited); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if table, err = readTable(filepath.Join(chart, "files", "akri.yaml")); err != nil {
		return nil, err
	}
	return &all, table.Decode(&all.akri)
}

func (v *value) defaultText() string {
	data, err := json.Marshal(v.def)
	if err != nil {
		return fmt.Sprint(v.def)
	}
	return string(data)
}
