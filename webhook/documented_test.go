package webhook

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestChecksAreDocumented checks that docs/admission.md has a row for each function
// whose name begins with check: checkName has the row name.
func TestChecksAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/admission.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := fs.Glob(os.DirFS("."), "*.go")
	if err != nil {
		t.Fatal(err)
	}
	capital := regexp.MustCompile(`[A-Z]`)
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range syntax.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok {
				continue
			}
			words, ok := strings.CutPrefix(function.Name.Name, "check")
			if !ok || words == "" {
				continue
			}
			found++
			name := strings.ToLower(strings.TrimSpace(capital.ReplaceAllString(words, " $0")))
			if !strings.Contains(string(page), "\n| "+name+" | ") {
				t.Errorf(`%s: docs/admission.md has no row "%s" for %s: add it in "The checks, in order"`, file, name, function.Name)
			}
		}
	}
	if found < 2 {
		t.Errorf("found only %d checks: has their prefix changed?", found)
	}
}
