package v0

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	// typeRow matches a row of the table of condition types, reasonHeading a heading with
	// the reasons that it explains.
	typeRow       = regexp.MustCompile(`(?m)^\| (\w+) \| (?:Configuration|both) \|`)
	reasonHeading = regexp.MustCompile(`(?m)^### (.+)$`)
)

// TestConditionsAreDocumented checks that docs/conditions.md has a row for each condition
// type and a heading for each reason, once, and none for others.
func TestConditionsAreDocumented(t *testing.T) {
	const page = "docs/conditions.md"
	text, err := os.ReadFile("../../" + page)
	if err != nil {
		t.Fatal(err)
	}
	var types, reasons []string
	for _, match := range typeRow.FindAllSubmatch(text, -1) {
		types = append(types, string(match[1]))
	}
	for _, match := range reasonHeading.FindAllSubmatch(text, -1) {
		reasons = append(reasons, strings.Split(string(match[1]), ", ")...)
	}
	for _, tc := range []struct {
		prefix, what string
		documented   []string
	}{
		{"Condition", "row in the table of conditions", types},
		{"Reason", "heading", reasons},
	} {
		declared := constantsOf(t, "status_types.go", tc.prefix)
		if len(declared) == 0 {
			t.Errorf("no constant %s… is found: has the file moved?", tc.prefix)
		}
		for _, name := range declared {
			if !slices.Contains(tc.documented, name) {
				t.Errorf("%s has no %s for %s", page, tc.what, name)
			}
		}
		for i, name := range tc.documented {
			if !slices.Contains(declared, name) || slices.Contains(tc.documented[:i], name) {
				t.Errorf("%s has a %s for %s, which does not exist, or another one", page, tc.what, name)
			}
		}
	}
}

// constantsOf returns the values of the string constants in a file whose names begin with
// prefix.
func constantsOf(t *testing.T, name, prefix string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	ast.Inspect(file, func(node ast.Node) bool {
		if spec, ok := node.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, prefix) {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, value)
		}
		return true
	})
	return values
}
