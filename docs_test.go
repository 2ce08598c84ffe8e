package akri_test

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"sigs.k8s.io/yaml"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	// quoted matches a path in backticks.
	quoted      = regexp.MustCompile("`([A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)*/?)`")
	placeholder = regexp.MustCompile(`(?m)^[A-Z]{4,}$`)
	codeSpan    = regexp.MustCompile("`[^`\n]+`")
	fences      = regexp.MustCompile("(?ms)^```.*?^```")
	// goName matches the name of a Go file in a comment, docLink a package.
	goName  = regexp.MustCompile(`(?:^|[\s(])([a-z0-9_/-]+\.go)\b`)
	docLink = regexp.MustCompile(`\[` + module + `/([a-z0-9_/-]+)\]`)
)

// TestLinks checks that the targets of relative links exist, headings included.
func TestLinks(t *testing.T) {
	r := repositoryOf(t)
	headings := map[string]map[string]bool{}
	for _, page := range r.pages() {
		headings[page.path] = anchors(page.text)
	}
	for _, page := range r.pages() {
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
	for _, page := range repositoryOf(t).pages() {
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

// helmCommand matches a command that takes the chart, and its source.
var helmCommand = regexp.MustCompile(`\bhelm (?:install|upgrade|template) akri (\S+)`)

// TestHelmCommands checks that commands use a packaged chart, which has the registry and
// the tag of its images, and that helm test does without --logs, with which Helm 3 fails.
func TestHelmCommands(t *testing.T) {
	commands := 0
	for _, page := range repositoryOf(t).pages() {
		for _, match := range helmCommand.FindAllStringSubmatchIndex(page.text, -1) {
			source := page.text[match[2]:match[3]]
			if commands++; source != "CHART" && !strings.HasPrefix(source, "bin/akri-") && !strings.HasPrefix(source, "oci://") {
				t.Errorf("%s:%d: the chart is %s: use bin/akri-*.tgz, oci://… or CHART", page.path, lineAt(page.text, match[0]), source)
			}
		}
		if at := strings.Index(page.text, "--set image.registry="); at >= 0 {
			t.Errorf("%s:%d: image.registry is part of the packaged chart", page.path, lineAt(page.text, at))
		}
		for line := range strings.Lines(page.text) {
			if strings.Contains(line, "helm test ") && strings.Contains(line, " --logs") {
				t.Errorf("%s: %s: Helm 3 fails with --logs", page.path, strings.TrimSpace(line))
			}
		}
	}
	if commands < 10 {
		t.Errorf("only %d commands were found", commands)
	}
}

// kustomizeCommand matches a command that applies or builds a kustomization of config/, also
// one that is broken into lines, and its directory.
var kustomizeCommand = regexp.MustCompile(
	`\bkubectl\s+(?:(?:apply|create|replace)\s+(?:--?[\w=-]+\s+)*-k\s+|kustomize\s+)(?:[\w.-]+/)*?(config/[\w/-]+)`)

// TestKustomizations checks that no command applies or builds manifests whose images are
// the placeholders akri.sh/NAME:dev, which no registry has. A kustomization of the
// operator's own sets them.
func TestKustomizations(t *testing.T) {
	r := repositoryOf(t)
	texts := slices.Clone(r.prose)
	for _, file := range r.code {
		if !file.test { // --help
			texts = append(texts, file.textFile)
		}
	}
	commands := 0
	for _, file := range texts {
		for _, match := range kustomizeCommand.FindAllStringSubmatchIndex(file.text, -1) {
			dir := file.text[match[2]:match[3]]
			commands++
			if manifest := r.placeholderIn(t, dir); manifest != "" {
				t.Errorf("%s:%d: %s has placeholders for images, in %s: use the chart, or a kustomization of one's own such as my-akri",
					file.path, lineAt(file.text, match[0]), dir, manifest)
			}
		}
	}
	if commands < 5 {
		t.Errorf("only %d commands were found", commands)
	}
	if r.placeholderIn(t, "config/default") == "" {
		t.Error("config/default is said to have no placeholders")
	}
}

// placeholderIn returns a manifest of a kustomization whose image is a placeholder, or "".
func (r *repository) placeholderIn(t *testing.T, dir string) string {
	t.Helper()
	var kustomization struct {
		Resources []string `json:"resources"`
	}
	if err := yaml.Unmarshal([]byte(r.textOf(path.Join(dir, "kustomization.yaml"))), &kustomization); err != nil {
		t.Fatalf("%s: %v", dir, err)
	}
	for _, resource := range kustomization.Resources {
		name := path.Join(dir, resource)
		if r.dirs[name] {
			if found := r.placeholderIn(t, name); found != "" {
				return found
			}
		} else if strings.Contains(r.textOf(name), "image: akri.sh/") {
			return name
		}
	}
	return ""
}

// textOf returns the content of a page or manifest.
func (r *repository) textOf(name string) string {
	for _, file := range r.prose {
		if file.path == name {
			return file.text
		}
	}
	return ""
}

// TestPlaceholders finds lines of capitals, which stand for what somebody wanted to fill in.
func TestPlaceholders(t *testing.T) {
	r := repositoryOf(t)
	for _, page := range r.pages() {
		text := withoutFences(page.text)
		for _, match := range placeholder.FindAllStringIndex(text, -1) {
			t.Errorf("%s:%d: %s: fill it in", page.path, lineAt(text, match[0]), text[match[0]:match[1]])
		}
	}
}

// TestPathsInPages checks that paths in backticks exist, if they begin with a top-level
// directory.
func TestPathsInPages(t *testing.T) {
	r := repositoryOf(t)
	for _, page := range r.pages() {
		text := withoutFences(page.text)
		for _, match := range quoted.FindAllStringSubmatchIndex(text, -1) {
			name := strings.TrimSuffix(text[match[2]:match[3]], "/")
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
