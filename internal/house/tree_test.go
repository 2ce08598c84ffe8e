package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// Bounds on the size of files, functions and lines.
const (
	maxFileLines     = 500
	maxFunctionLines = 70
	maxLineLength    = 140
)

// repository is the tree as text. It includes nested modules, which are not built
// with these tests.
type repository struct {
	files []string // every file, sorted
	dirs  map[string]bool
	code  []goFile
	pages []textFile // Markdown
}

type textFile struct{ path, text string }

type goFile struct {
	textFile
	fileSet         *token.FileSet
	syntax          *ast.File
	test, generated bool
}

func (f *goFile) dir() string { return path.Dir(f.path) }

func (f *goFile) line(pos token.Pos) int { return f.fileSet.Position(pos).Line }

// readRepository reads the tree once for all tests.
var readRepository = sync.OnceValues(func() (*repository, error) {
	r := &repository{dirs: map[string]bool{".": true}}
	root := os.DirFS("../..")
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || name == "bin"):
			return fs.SkipDir
		case entry.IsDir():
			r.dirs[name] = true
			return nil
		}
		r.files = append(r.files, name)
		return r.read(root, name)
	})
	slices.Sort(r.files) // the walk has the files of a/b before a/b.go
	return r, err
})

// read adds a file to the repository, if a rule applies to it.
func (r *repository) read(root fs.FS, name string) error {
	extension := path.Ext(name)
	if extension != ".go" && extension != ".md" || extension == ".go" && strings.Contains(name, "testdata/") {
		return nil
	}
	data, err := fs.ReadFile(root, name)
	if err != nil {
		return err
	}
	file := textFile{path: name, text: string(data)}
	if extension != ".go" {
		r.pages = append(r.pages, file)
		return nil
	}
	fileSet := token.NewFileSet()
	syntax, err := parser.ParseFile(fileSet, name, data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	r.code = append(r.code, goFile{
		textFile: file, fileSet: fileSet, syntax: syntax,
		test: strings.HasSuffix(name, "_test.go"), generated: ast.IsGenerated(syntax),
	})
	return nil
}

func repositoryOf(t *testing.T) *repository {
	t.Helper()
	r, err := readRepository()
	if err != nil {
		t.Fatal(err)
	}
	if len(r.code) < 100 || len(r.pages) < 20 {
		t.Fatalf("%d Go files and %d pages: the root of the repository is not two directories up", len(r.code), len(r.pages))
	}
	return r
}

func TestFileLength(t *testing.T) {
	for _, file := range repositoryOf(t).code {
		if lines := strings.Count(file.text, "\n"); lines > maxFileLines && !file.generated {
			t.Errorf("%s: %d lines, more than %d: split it, one noun or policy per file", file.path, lines, maxFileLines)
		}
	}
}

func TestFunctionLength(t *testing.T) {
	for _, file := range repositoryOf(t).code {
		if file.generated {
			continue
		}
		for _, declaration := range file.syntax.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if lines := file.length(function); lines > maxFunctionLines {
				t.Errorf("%s:%d: %s has %d lines, more than %d: move its steps into functions with names",
					file.path, file.line(function.Pos()), function.Name.Name, lines, maxFunctionLines)
			}
		}
	}
}

// length returns the number of lines of a function. In tests, tables of cases are
// not counted.
func (f *goFile) length(function *ast.FuncDecl) int {
	span := func(node ast.Node) int { return f.line(node.End()) - f.line(node.Pos()) }
	lines := span(function) + 1
	if f.test {
		ast.Inspect(function, func(node ast.Node) bool {
			table, ok := node.(*ast.CompositeLit)
			if ok {
				lines -= span(table)
			}
			return !ok
		})
	}
	return lines
}

// markdownLink matches the part of a link that cannot be wrapped.
var markdownLink = regexp.MustCompile(`\]\([^)]*\)|https?://\S+`)

func TestLineLength(t *testing.T) {
	r := repositoryOf(t)
	check := func(file textFile, shown func(string) string) {
		number := 0
		for line := range strings.Lines(file.text) {
			number++
			if length := utf8.RuneCountInString(shown(strings.TrimRight(line, "\n"))); length > maxLineLength {
				t.Errorf("%s:%d: %d characters, more than %d: break the line", file.path, number, length, maxLineLength)
			}
		}
	}
	for _, file := range r.code {
		if !file.generated {
			check(file.textFile, func(line string) string {
				if strings.HasPrefix(strings.TrimSpace(line), "// +kubebuilder:") {
					return "" // controller-gen reads a marker from one line
				}
				return line
			})
		}
	}
	for _, file := range r.pages {
		if path.Dir(file.path) != "docs/reference" { // generated
			check(file, func(line string) string {
				if strings.HasPrefix(strings.TrimSpace(line), "|") {
					return ""
				}
				return markdownLink.ReplaceAllString(line, "]")
			})
		}
	}
}

// catchAll matches names that say nothing about the content.
var catchAll = regexp.MustCompile(`^(utils?|helpers?|commons?|misc|shared)$`)

func TestNames(t *testing.T) {
	r := repositoryOf(t)
	for dir := range r.dirs {
		if catchAll.MatchString(path.Base(dir)) {
			t.Errorf("%s: a name for anything: name the directory after what is inside", dir)
		}
	}
	for _, file := range r.code {
		stem := strings.TrimSuffix(path.Base(file.path), ".go")
		if slices.ContainsFunc(strings.Split(stem, "_"), catchAll.MatchString) {
			t.Errorf("%s: a name for anything: name the file after what is inside", file.path)
		}
	}
}

// TestPackageComments checks that each package says once what it promises, where a
// reader looks for it.
func TestPackageComments(t *testing.T) {
	type unit struct {
		files, comments []string
		name, comment   string
	}
	packages := map[string]*unit{}
	for _, file := range repositoryOf(t).code {
		if file.test {
			if file.syntax.Doc != nil {
				t.Errorf("%s: a package comment in a test: leave an empty line above the package clause", file.path)
			}
			continue
		}
		p := packages[file.dir()]
		if p == nil {
			p = &unit{name: file.syntax.Name.Name}
			packages[file.dir()] = p
		}
		p.files = append(p.files, file.path)
		if file.syntax.Doc != nil {
			p.comments = append(p.comments, file.path)
			p.comment = file.syntax.Doc.Text()
		}
	}
	for dir, p := range packages {
		switch {
		case len(p.comments) == 0:
			t.Errorf("%s: no package comment: say in doc.go what the package promises", dir)
		case len(p.comments) > 1:
			t.Errorf("%s: %d package comments, in %s: keep the one in doc.go", dir, len(p.comments), strings.Join(p.comments, ", "))
		case p.name != "main" && !strings.HasPrefix(p.comment, "Package "+p.name+" "):
			t.Errorf("%s: the package comment does not begin with %q", p.comments[0], "Package "+p.name)
		case p.name != "main" && len(p.files) > 1 && path.Base(p.comments[0]) != "doc.go":
			t.Errorf("%s: the package has several files: move its comment to doc.go", p.comments[0])
		}
	}
}
