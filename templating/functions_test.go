package templating_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"akri.sh/akri/templating"
	"akri.sh/akri/templating/internal/functions"
)

const (
	documentation = "../docs/templating.md"
	marker        = "<!-- functions:"
)

// TestFunctions runs the examples in the documentation.
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
		t.Errorf("the tables in %s do not match internal/functions: go test ./templating -update", documentation)
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
			checkTypes(t, value)
			var want any
			if err := json.Unmarshal([]byte(cell(3)), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, viaJSON(t, value)); diff != "" {
				t.Errorf("%s: -want +got\n%s", cell(2), diff)
			}
		})
	}
	if ran != len(allFunctions()) {
		t.Errorf("ran %d examples for %d functions", ran, len(allFunctions()))
	}
}

// checkTypes reports values of Go types that the language does not have. As JSON
// they look the same, but other functions do not accept them.
func checkTypes(t *testing.T, value any) {
	t.Helper()
	switch value := value.(type) {
	case nil, bool, int64, float64, string:
	case []any:
		for _, element := range value {
			checkTypes(t, element)
		}
	case map[string]any:
		for _, element := range value {
			checkTypes(t, element)
		}
	default:
		t.Errorf("the result contains a value of type %T: convert it to a type of the language (int to int64)", value)
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

// functionTables returns one table per group, in the order of groups below.
func functionTables() string {
	groups := []string{
		"Choosing", "Strings", "Names", "Numbers", "Lists", "Maps", "Encoding", "Regular expressions", "Addresses and paths", "Versions",
	}
	var b strings.Builder
	for _, group := range groups {
		fmt.Fprintf(&b, "\n### %s\n\n| function | result | example | gives |\n|---|---|---|---|\n", group)
		for _, f := range allFunctions() {
			if f.Group == group {
				what := f.What
				if f.Unlike != "" {
					what += " (sprig's " + f.Unlike + ")"
				}
				fmt.Fprintf(&b, "| `%s` | %s | `{{ %s }}` | `%s` |\n", f.Name, escapeCell(what), escapeCell(f.Example), escapeCell(f.Result))
			}
		}
	}
	return b.String()
}

// allFunctions returns the table, sorted by name.
func allFunctions() (all []*functions.Function) {
	for _, name := range functions.Names() {
		f, _ := functions.Lookup(name)
		all = append(all, f)
	}
	return all
}

func escapeCell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// TestDocumented checks that the documentation mentions every word of the language.
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
