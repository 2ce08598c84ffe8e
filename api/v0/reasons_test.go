package v0

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestEveryReasonIsDocumented checks that docs/conditions.md has a heading for each
// reason.
func TestEveryReasonIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/conditions.md")
	if err != nil {
		t.Fatal(err)
	}
	headings := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if heading, found := strings.CutPrefix(line, "### "); found {
			for name := range strings.SplitSeq(strings.TrimSpace(heading), ", ") {
				headings[name] = true
			}
		}
	}
	file, err := parser.ParseFile(token.NewFileSet(), "status_types.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Reason") {
			return true
		}
		reason, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		found++
		if !headings[reason] {
			t.Errorf("reason %s has no heading in docs/conditions.md", reason)
		}
		return true
	})
	if found < 15 {
		t.Errorf("found only %d reasons: has the file moved?", found)
	}
}
