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

// TestChecksAreDocumented checks that the table of docs/admission.md has a row for each
// function whose name begins with check, and no other: checkName has the row name.
func TestChecksAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/admission.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n## The checks, in order\n")
	table, _, _ = strings.Cut(table, "\n### ")
	files, err := fs.Glob(os.DirFS("."), "*.go")
	if err != nil {
		t.Fatal(err)
	}
	capital := regexp.MustCompile(`[A-Z]`)
	found := map[string]bool{}
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
			name := strings.ToLower(strings.TrimSpace(capital.ReplaceAllString(words, " $0")))
			if found[name] = true; !strings.Contains(table, "\n| "+name+" | ") {
				t.Errorf(`%s: docs/admission.md has no row "%s" for %s: add it in "The checks, in order"`, file, name, function.Name)
			}
		}
	}
	for line := range strings.Lines(table) {
		name, _, row := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		if row && name != "check" && name != "—" && !found[name] {
			t.Errorf("docs/admission.md has a row %q, but there is no such check", name)
		}
	}

}
