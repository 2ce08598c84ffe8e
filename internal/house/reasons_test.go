package house

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	// eventReason matches the reason of an Event in documentation: in a selector, or after
	// the word.
	eventReason = regexp.MustCompile("--field-selector reason=(\\w+)|\\bEvents? `([A-Z]\\w+)`|\\bevents? `([A-Z]\\w+)`")
	// eventRow matches a row of the table of Events in docs/devices.md.
	eventRow = regexp.MustCompile("(?m)^\\| ((?:`[A-Z]\\w+`(?:, )?)+) \\|")
	camel    = regexp.MustCompile(`^[A-Z][a-z]+([A-Z][a-z]+)+$`)
)

// foreignReasons are those of Events that Kubernetes emits.
var foreignReasons = []string{"FailedCreate", "UnexpectedAdmissionError"}

// TestEventReasons checks that the reason of each Event is a constant, that the
// documentation names it, and that it names no others.
func TestEventReasons(t *testing.T) {
	r := repositoryOf(t)
	emitted, conditions := r.eventReasons(t)
	if len(emitted) < 10 || len(conditions) < 10 {
		t.Fatalf("only %d reasons of Events and %d of conditions were found", len(emitted), len(conditions))
	}
	documented := map[string]string{} // the page of a reason
	var all strings.Builder
	for _, page := range r.pages {
		if !strings.HasPrefix(page.path, "docs/") {
			continue
		}
		all.WriteString(page.text)
		for _, match := range eventReason.FindAllStringSubmatch(page.text, -1) {
			documented[match[1]+match[2]+match[3]] = page.path
		}
		if page.path == "docs/devices.md" {
			for _, match := range eventRow.FindAllStringSubmatch(page.text, -1) {
				for reason := range strings.SplitSeq(match[1], ", ") {
					documented[strings.Trim(reason, "`")] = page.path
				}
			}
		}
	}
	for reason, file := range emitted {
		if !strings.Contains(all.String(), "`"+reason+"`") {
			t.Errorf("%s emits Events with the reason %s, which no page names in backticks: say what happened and what to do", file, reason)
		}
	}
	for reason, page := range documented {
		if emitted[reason] == "" && !conditions[reason] && !slices.Contains(foreignReasons, reason) {
			t.Errorf("%s names Events with the reason %s, which nothing emits", page, reason)
		}
	}
}

// eventReasons returns the reasons of Events with the files of their constants, and those
// of conditions, which are reasons of Events, too. Constants of Events begin with "reason",
// and those of conditions with "Reason".
func (r *repository) eventReasons(t *testing.T) (emitted map[string]string, conditions map[string]bool) {
	t.Helper()
	emitted, conditions = map[string]string{}, map[string]bool{}
	for _, file := range r.code {
		if file.test {
			continue
		}
		ast.Inspect(file.syntax, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.CallExpr:
				function, ok := node.Fun.(*ast.SelectorExpr)
				if !ok || function.Sel.Name != "Eventf" || len(node.Args) < 4 {
					return true
				}
				if _, literal := node.Args[3].(*ast.BasicLit); literal {
					t.Errorf("%s:%d: the reason of an Event is a text: declare a constant reason…", file.path, file.line(node.Pos()))
				}
			case *ast.ValueSpec:
				for i, name := range node.Names {
					value := constantText(node, i)
					switch {
					case strings.HasPrefix(file.path, "api/") && strings.HasPrefix(name.Name, "Reason"):
						conditions[value] = true
					case strings.HasPrefix(name.Name, "reason") && camel.MatchString(value):
						emitted[value] = file.path
					}
				}
			}
			return true
		})
	}
	return emitted, conditions
}

// constantText returns the text of a constant, or "".
func constantText(spec *ast.ValueSpec, i int) string {
	if i >= len(spec.Values) {
		return ""
	}
	literal, ok := spec.Values[i].(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	value, err := strconv.Unquote(literal.Value)
	if err != nil {
		return ""
	}
	return value
}
