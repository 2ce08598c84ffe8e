package templating_test

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"akri.sh/akri/templating"
	"akri.sh/akri/templating/internal/functions"
)

const (
	documentation = "../docs/templating.md"
	marker        = "<!-- functions:"
)

// TestFunctions runs the examples as the documentation shows them.
func TestFunctions(t *testing.T) {
	data, err := os.ReadFile(documentation)
	if err != nil {
		t.Fatal(err)
	}
	prose, table, found := strings.Cut(string(data), marker)
	if !found {
		t.Fatalf("%s has no %s", documentation, marker)
	}
	first, table, _ := strings.Cut(table, "\n")
	if *update {
		table = functionTables()
		if err := os.WriteFile(documentation, []byte(prose+marker+first+"\n"+table), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := functionTables(); table != want {
		t.Errorf("the tables in %s are not those of functable.go: go test ./templating -update", documentation)
	}
	ran := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.ReplaceAll(strings.TrimSpace(line), `\|`, "\x00"), " | ")
		if len(cells) != 4 || !strings.HasPrefix(line, "| `") {
			continue
		}
		ran++
		cell := func(i int) string {
			return strings.Trim(strings.Trim(strings.ReplaceAll(cells[i], "\x00", "|"), "| "), "`")
		}
		t.Run(cell(0), func(t *testing.T) {
			value, diags := evaluate(t, cell(2))
			if err := diags.Err(); err != nil {
				t.Fatal(err)
			}
			var want any
			if err := json.Unmarshal([]byte(cell(3)), &want); err != nil {
				t.Fatal(err)
			}
			if got := viaJSON(t, value); !reflect.DeepEqual(got, want) {
				t.Errorf("%s\ngot  %v\nwant %v", cell(2), got, want)
			}
		})
	}
	if ran != len(functions.Table()) {
		t.Errorf("ran %d examples for %d functions", ran, len(functions.Table()))
	}
}

func viaJSON(t *testing.T, value any) (result any) {
	data, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(data, &result)
	}
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// functionTables is one table per group, in the order of groups below.
func functionTables() string {
	groups := []string{
		"Choosing", "Text", "Names", "Numbers", "Lists", "Maps", "Encoding", "Regular expressions", "Addresses and paths", "Versions",
	}
	var b strings.Builder
	for _, group := range groups {
		fmt.Fprintf(&b, "\n### %s\n\n| function | result | example | gives |\n|---|---|---|---|\n", group)
		for _, f := range functions.Table() {
			if f.Group == group {
				fmt.Fprintf(&b, "| `%s` | %s | `{{ %s }}` | `%s` |\n", f.Name, escapeCell(f.What), escapeCell(f.Example), escapeCell(f.Result))
			}
		}
	}
	return b.String()
}

func escapeCell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

func TestFunctionTable(t *testing.T) {
	var last string
	groups := map[string]bool{}
	for _, f := range functions.Table() {
		if f.Name <= last {
			t.Errorf("%s is in the table twice", f.Name)
		}
		last = f.Name
		groups[f.Group] = true
		if f.What == "" || strings.HasSuffix(f.What, ".") {
			t.Errorf("%s: What is to be a phrase without a full stop", f.Name)
		}
	}
	for group := range groups {
		if !slices.Contains(strings.Split(functionTables(), "\n"), "### "+group) {
			t.Errorf("group %s is not documented", group)
		}
	}
}

// TestDocumented: whatever the language has, its page tells.
func TestDocumented(t *testing.T) {
	data, err := os.ReadFile(documentation)
	if err != nil {
		t.Fatal(err)
	}
	names := templating.VariableNames()
	if !slices.IsSorted(names) {
		t.Errorf("variables are found by binary search and must be sorted: %v", names)
	}
	for _, word := range append(names, templating.DirectiveKeys()...) {
		if !strings.Contains(string(data), "`"+word+"`") {
			t.Errorf("%s does not mention %s", documentation, word)
		}
	}
}
