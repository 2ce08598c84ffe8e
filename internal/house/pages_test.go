package house

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	// quoted matches a path in backticks.
	quoted   = regexp.MustCompile("`([A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)*/?)`")
	codeSpan = regexp.MustCompile("`[^`\n]+`")
	fences   = regexp.MustCompile("(?ms)^```.*?^```")
	// goName matches the name of a Go file in a comment, docLink a package.
	goName  = regexp.MustCompile(`(?:^|[\s(])([a-z0-9_/-]+\.go)\b`)
	docLink = regexp.MustCompile(`\[` + module + `/([a-z0-9_/-]+)\]`)
)

// TestLinks checks that the targets of relative links exist, headings included.
func TestLinks(t *testing.T) {
	r := repositoryOf(t)
	headings := map[string]map[string]bool{}
	for _, page := range r.pages {
		headings[page.path] = anchors(page.text)
	}
	for _, page := range r.pages {
		for _, match := range link.FindAllStringSubmatchIndex(withoutCode(page.text), -1) {
			target := page.text[match[2]:match[3]]
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			name, anchor, _ := strings.Cut(target, "#")
			full := page.path
			if name != "" {
				full = path.Join(path.Dir(page.path), name)
			}
			switch {
			case !r.has(full):
				t.Errorf("%s:%d: the link to %s is broken: correct or remove it", page.path, lineAt(page.text, match[0]), target)
			case anchor != "" && !headings[full][anchor]:
				t.Errorf("%s:%d: %s has no heading #%s", page.path, lineAt(page.text, match[0]), full, anchor)
			}
		}
	}
}

// TestContents checks that docs/README.md links all other pages in docs.
func TestContents(t *testing.T) {
	const contents = "docs/README.md"
	linked := map[string]bool{contents: true}
	var pages []string
	for _, page := range repositoryOf(t).pages {
		if strings.HasPrefix(page.path, "docs/") {
			pages = append(pages, page.path)
		}
		if page.path != contents {
			continue
		}
		for _, match := range link.FindAllStringSubmatch(withoutCode(page.text), -1) {
			name, _, _ := strings.Cut(match[1], "#")
			linked[path.Join("docs", name)] = true
		}
	}
	if len(pages) < 30 {
		t.Errorf("only %d pages were found", len(pages))
	}
	for _, page := range pages {
		if !linked[page] {
			t.Errorf("%s does not link %s: put it where a newcomer needs it", contents, page)
		}
	}
}

// withoutCode blanks code spans, in which brackets are no links. Positions stay.
func withoutCode(text string) string {
	return codeSpan.ReplaceAllStringFunc(text, func(span string) string { return strings.Repeat(" ", len(span)) })
}

// withoutFences blanks code blocks. Lines stay.
func withoutFences(text string) string {
	return fences.ReplaceAllStringFunc(text, func(block string) string { return strings.Repeat("\n", strings.Count(block, "\n")) })
}

// TestPathsInPages checks that paths in backticks exist, if they begin with a top-level
// directory, and that there are Go files of the names that are without a directory.
func TestPathsInPages(t *testing.T) {
	r := repositoryOf(t)
	named := map[string]bool{}
	for _, file := range r.code {
		named[path.Base(file.path)] = true
	}
	for _, page := range r.pages {
		text := withoutFences(page.text)
		for _, match := range quoted.FindAllStringSubmatchIndex(text, -1) {
			name := strings.TrimSuffix(text[match[2]:match[3]], "/")
			if strings.HasSuffix(name, ".go") && !strings.Contains(name, "/") && !named[name] {
				t.Errorf("%s:%d: there is no %s", page.path, lineAt(text, match[0]), name)
			}
			if !strings.Contains(name, "/") || !r.dirs[topLevel(name)] || r.has(name) || r.has(path.Join(path.Dir(page.path), name)) {
				continue
			}
			t.Errorf("%s:%d: there is no %s", page.path, lineAt(text, match[0]), name)
		}
	}
}

// TestPathsInPackageComments checks that the files and packages that a package
// comment names exist.
func TestPathsInPackageComments(t *testing.T) {
	r := repositoryOf(t)
	for _, file := range r.code {
		if file.test || file.syntax.Doc == nil {
			continue
		}
		comment := file.syntax.Doc.Text()
		for _, match := range goName.FindAllStringSubmatch(comment, -1) {
			if !r.has(path.Join(file.dir(), match[1])) && !r.has(match[1]) {
				t.Errorf("%s: the package comment names %s, which does not exist", file.path, match[1])
			}
		}
		for _, match := range docLink.FindAllStringSubmatch(comment, -1) {
			if !r.dirs[match[1]] {
				t.Errorf("%s: the package comment links %s/%s, which does not exist", file.path, module, match[1])
			}
		}
	}
}

// has reports whether a file or directory of that name exists.
func (r *repository) has(name string) bool {
	_, found := slices.BinarySearch(r.files, name)
	return found || r.dirs[name]
}

func lineAt(text string, offset int) int { return 1 + strings.Count(text[:offset], "\n") }

// anchors returns the headings of a page in the form in which GitHub links them.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(fences.ReplaceAllString(text, ""), -1) {
		all[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, match[1])] = true
	}
	return all
}
