package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// writeReadme writes the tables of values into the chart's README.md.
func writeReadme(chart string, all *allValues) error {
	file := filepath.Join(chart, "README.md")
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text := string(data)
	tables := map[string][]value{"handler": all.handler}
	for _, v := range all.own {
		name := "values"
		if v.path[0] == "handlers" || v.path[0] == "pods" {
			name = v.path[0]
		}
		tables[name] = append(tables[name], v)
	}
	for name, values := range tables {
		begin, end := fmt.Sprintf("<!-- begin %s -->\n", name), fmt.Sprintf("<!-- end %s -->", name)
		before, rest, found := strings.Cut(text, begin)
		_, after, closed := strings.Cut(rest, end)
		if !found || !closed {
			return fmt.Errorf("%s: no %s… %s", file, begin, end)
		}
		text = before + begin + "\n" + valueTable(values) + "\n" + end + after
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

func valueTable(values []value) string {
	var out strings.Builder
	out.WriteString("| key | type | default | |\n|---|---|---|---|\n")
	for _, v := range values {
		escape := func(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
		key := strings.Join(v.path, ".")
		fmt.Fprintf(&out, "| `%s` | %s | `%s` | %s |\n", key, escape(v.kind), escape(v.defaultText()), escape(v.description))
	}
	return out.String()
}
