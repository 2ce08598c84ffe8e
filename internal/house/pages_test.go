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
