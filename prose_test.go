package akri_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// maxMarkersInComments bounds the number of marker phrases in all comments. Text
// that users read contains none.
const maxMarkersInComments = 10

// marker is a phrase to avoid.
type marker struct {
	words  []string
	remedy string
}

// readMarkers reads the table of words in CONTRIBUTING.md.
func readMarkers(t *testing.T) []marker {
	t.Helper()
	text, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	var markers []marker
	_, table, _ := strings.Cut(string(text), "\n| avoid | write |\n|---|---|\n")
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 4 {
			break
		}
		for phrase := range strings.SplitSeq(cells[1], ",") {
			markers = append(markers, marker{strings.Fields(strings.ToLower(phrase)), strings.TrimSpace(cells[2])})
		}
	}
	if len(markers) < 10 {
		t.Fatalf("CONTRIBUTING.md lists %d phrases to avoid: the table was not found", len(markers))
	}
	return markers
}

// word is a word of a text, in lower case, with its line.
type word struct {
	text string
	line int
}

// wordsOf returns the words of a text that begins on a line.
func wordsOf(text string, line int) []word {
	var words []word
	for each := range strings.Lines(strings.ToLower(text)) {
		for field := range strings.FieldsSeq(each) {
			if field != "//" && field != "#" {
				words = append(words, word{field, line})
			}
		}
		line++
	}
	return words
}

// find calls report for each occurrence of the phrase. Punctuation around a phrase
// is ignored; punctuation within it ends it.
func (m marker) find(words []word, report func(line int)) {
	punctuation := func(r rune) bool { return !unicode.IsLetter(r) }
	for i := 0; i+len(m.words) <= len(words); i++ {
		for j, want := range m.words {
			got := words[i+j].text
			if j == 0 {
				got = strings.TrimLeftFunc(got, punctuation)
			}
			if j == len(m.words)-1 {
				got = strings.TrimRightFunc(got, punctuation)
			}
			if got != want {
				break
			}
			if j == len(m.words)-1 {
				report(words[i].line)
			}
		}
	}
}

// TestWords looks for the phrases that CONTRIBUTING.md lists.
func TestWords(t *testing.T) {
	r, markers := repositoryOf(t), readMarkers(t)
	search := func(name string, words []word, report func(finding string)) {
		for _, m := range markers {
			m.find(words, func(line int) {
				report(fmt.Sprintf("%s:%d: %q: write %s", name, line, strings.Join(m.words, " "), m.remedy))
			})
		}
	}
	for _, file := range r.prose {
		search(file.path, proseOf(file), func(finding string) { t.Error(finding) })
	}
	var inComments []string
	for _, file := range r.code {
		for _, words := range stringsOf(&file) {
			search(file.path, words, func(finding string) { t.Error(finding + " (a string)") })
		}
		for _, words := range commentsOf(&file) {
			search(file.path, words, func(finding string) { inComments = append(inComments, finding+" (a comment)") })
		}
	}
	if len(inComments) > maxMarkersInComments {
		t.Errorf("%d marker phrases in comments, more than %d:\n%s", len(inComments), maxMarkersInComments, strings.Join(inComments, "\n"))
	}
}

// commentsOf returns the words of each group of comments in a file.
func commentsOf(file *goFile) [][]word {
	var all [][]word
	for _, group := range file.syntax.Comments {
		var text strings.Builder
		for _, comment := range group.List {
			text.WriteString(comment.Text + "\n")
		}
		all = append(all, wordsOf(text.String(), file.line(group.Pos())))
	}
	return all
}

// proseOf returns the words of a text, without the tables of CONTRIBUTING.md, which
// quote what they forbid.
func proseOf(file textFile) []word {
	if file.path != "CONTRIBUTING.md" {
		return wordsOf(file.text, 1)
	}
	var kept strings.Builder
	for line := range strings.Lines(file.text) {
		if strings.HasPrefix(line, "|") {
			line = "\n"
		}
		kept.WriteString(line)
	}
	return wordsOf(kept.String(), 1)
}

// stringsOf returns the words of each string in a file. It skips generated files,
// and this one, which quotes what it forbids.
func stringsOf(file *goFile) [][]word {
	var all [][]word
	if file.generated || file.path == "prose_test.go" {
		return nil
	}
	ast.Inspect(file.syntax, func(node ast.Node) bool {
		literal, ok := node.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		if text, err := strconv.Unquote(literal.Value); err == nil {
			all = append(all, wordsOf(text, file.line(literal.Pos())))
		}
		return true
	})
	return all
}

// lowerCasePod matches a Pod with a small letter, but not a part of a path, a name or code.
var lowerCasePod = regexp.MustCompile("(^|[ (])pods?([ ,;)'’]|[.]?$|[.][ )])")

// TestPods looks for Pods with a small letter in comments and documentation.
func TestPods(t *testing.T) {
	r := repositoryOf(t)
	report := func(name string, line int, text string) {
		if lowerCasePod.MatchString(text) {
			t.Errorf("%s:%d: %s: write Pod", name, line, strings.TrimSpace(text))
		}
	}
	for _, file := range r.pages() {
		line := 0
		for text := range strings.Lines(withoutCode(withoutFences(file.text))) {
			line++
			if !strings.HasPrefix(text, "    ") {
				report(file.path, line, strings.TrimSpace(text))
			}
		}
	}
	for _, file := range r.code {
		for _, group := range file.syntax.Comments {
			for _, comment := range group.List {
				text, isCode := strings.TrimPrefix(comment.Text, "//"), strings.HasPrefix(comment.Text, "//\t")
				if !isCode && !strings.HasPrefix(text, "    ") {
					report(file.path, file.line(comment.Pos()), withoutCode(text))
				}
			}
		}
	}
}

func TestMarkers(t *testing.T) {
	isWell, beside := marker{words: []string{"is", "well"}}, marker{words: []string{"beside"}}
	for text, want := range map[string]int{
		"All is well.":                1,
		"// what is\n// well, then":   1,
		"a well-known name is well":   1,
		"it is well-known":            0,
		"as it is. Well":              0,
		"next to (beside) it":         1,
		"besides, \"beside\", Beside": 2,
	} {
		found := 0
		for _, m := range []marker{isWell, beside} {
			m.find(wordsOf(text, 1), func(int) { found++ })
		}
		if found != want {
			t.Errorf("%q: found %d phrases, want %d", text, found, want)
		}
	}
}
