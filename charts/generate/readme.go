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
	var own, handlers []value
	for _, v := range all.own {
		if v.path[0] == "handlers" {
			handlers = append(handlers, v)
		} else {
			own = append(own, v)
		}
	}
	var noMeaning strings.Builder
	noMeaning.WriteString("| key | instead |\n|---|---|\n")
	for _, g := range all.gone {
		fmt.Fprintf(&noMeaning, "| `%s` | %s |\n", g.Key, g.Message)
	}
	for name, table := range map[string]string{
		"values": valueTable(own), "handler": valueTable(all.handler), "handlers": valueTable(handlers),
		"akri": valueTable(all.akri), "gone": noMeaning.String(),
	} {
		begin, end := fmt.Sprintf("<!-- begin %s -->\n", name), fmt.Sprintf("<!-- end %s -->", name)
		before, rest, found := strings.Cut(text, begin)
		_, after, closed := strings.Cut(rest, end)
		if !found || !closed {
			return fmt.Errorf("%s: no %s… %s", file, begin, end)
		}
		text = before + begin + "\n" + table + "\n" + end + after
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

func valueTable(values []value) string {
	var out strings.Builder
	out.WriteString("| key | type | default | |\n|---|---|---|---|\n")
	for _, v := range values {
		kind := v.kind
		if kind == "" || strings.HasPrefix(kind, "|") {
			kind = `""` + kind
		}
		escape := func(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
		fmt.Fprintf(&out, "| `%s` | %s | `%s` | %s |\n", strings.Join(v.path, "."), escape(kind), escape(v.defaultText()), escape(v.description))
	}
	return out.String()
}
