package view

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"akri.sh/akri/controller/inventory"
)

// Verb is what would become of an object.
type Verb string

const (
	Created   Verb = "created"
	Changed   Verb = "changed"
	Recreated Verb = "deleted and made anew"
	Deleted   Verb = "deleted"
	// Released: it stays, and is no longer looked after.
	Released Verb = "left to itself"
	// Waits: nothing can be done before something else has happened.
	Waits Verb = "waits"
	// Refused: it cannot become what the template asks for.
	Refused Verb = "refused"
)

// signs stand for verbs at the beginning of a line.
var signs = map[Verb]string{Created: "+", Changed: "~", Recreated: "±", Deleted: "-", Released: "-", Waits: "…", Refused: "!"}

// Change is what would become of one object.
type Change struct {
	Verb   Verb
	Object inventory.Ref
	// Template is where it is written; empty if no template asks for it.
	Template string
	// Why, in words for people; may be empty.
	Why string
	// Before and After are the object as the API server has it and would have it;
	// nil if there is none.
	Before, After map[string]any
}

// Changes are those of the objects of one parent.
type Changes struct {
	// Parent is a Configuration's group or an Instance, in words.
	Parent string
	// Sample: the device is made up, since none was found yet.
	Sample bool
	// Problems keep objects from being rendered at all.
	Problems []string
	Objects  []Change
}

// Summary counts what [Diff] has printed.
type Summary struct {
	Differences, Refusals int
}

// Diff prints what would become of objects: a line for each, and what differs in
// YAML. Values of Secrets are not shown.
func Diff(out io.Writer, all []Changes) (Summary, error) {
	var summary Summary
	var b strings.Builder
	for _, changes := range all {
		var body strings.Builder
		for _, problem := range changes.Problems {
			summary.Refusals++
			fmt.Fprintf(&body, "# ! %s\n", commented(problem))
		}
		for _, change := range changes.Objects {
			text, err := change.text()
			if err != nil {
				return summary, err
			}
			switch {
			case change.Verb == Refused:
				summary.Refusals++
			case text == "":
				continue // applying it again would change nothing
			default:
				summary.Differences++
			}
			fmt.Fprintf(&body, "# %s %s  %s\n%s", signs[change.Verb], change.Object, commented(change.words()), text)
		}
		if body.Len() == 0 {
			continue
		}
		fmt.Fprintf(&b, "# %s", changes.Parent)
		if changes.Sample {
			b.WriteString("  (SAMPLE: a made-up device; none was found yet)")
		}
		b.WriteString("\n" + body.String())
	}
	if _, err := io.WriteString(out, b.String()); err != nil {
		return summary, fmt.Errorf("print: %w", err)
	}
	return summary, nil
}

// words say what becomes of the object, why, and which template asks for it.
func (c *Change) words() string {
	text := string(c.Verb)
	if c.Why != "" {
		text += ": " + c.Why
	}
	if c.Template != "" {
		text += "  (" + c.Template + ")"
	}
	return text
}

// commented keeps the lines of a text behind the sign of a comment.
func commented(text string) string { return strings.ReplaceAll(text, "\n", "\n#   ") }

// text is the difference in YAML. It is empty if what is to be changed would stay
// as it is.
func (c *Change) text() (string, error) {
	if c.Verb == Refused {
		return "", nil
	}
	before, after := legible(c.Before), legible(c.After)
	if c.Object.Group == "" && c.Object.Kind == "Secret" {
		redact(before, after)
	}
	if c.Verb == Changed && unchanged(before, after) {
		return "", nil
	}
	name := strings.ReplaceAll(c.Object.String(), " ", "/")
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		FromFile: "live/" + name, A: lines(before),
		ToFile: "wanted/" + name, B: lines(after),
		Context: 3,
	})
	if err != nil {
		return "", fmt.Errorf("compare %s: %w", c.Object, err)
	}
	if text == "" {
		text = "#   it stays as it is\n" // it is released, or waits
	}
	return text, nil
}

func unchanged(before, after map[string]any) bool {
	return slices.Equal(lines(before), lines(after))
}

// noise are the fields of metadata that the API server writes.
var noise = []string{"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"}

// legible is a copy of an object without what the API server and other
// controllers write about it.
func legible(object map[string]any) map[string]any {
	if object == nil {
		return nil
	}
	object = runtime.DeepCopyJSON(object)
	delete(object, "status")
	metadata, _ := object["metadata"].(map[string]any)
	for _, field := range noise {
		delete(metadata, field)
	}
	return object
}

// redact hides the values of a Secret, and tells which of them differ. What
// kubectl apply has noted of the Secret holds the values too.
func redact(before, after map[string]any) {
	for _, field := range []string{"data", "stringData"} {
		was, _ := before[field].(map[string]any)
		is, _ := after[field].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(merged(was, is))) {
			old, there := was[key]
			now, wanted := is[key]
			differ := there && wanted && old != now
			if there {
				was[key] = hidden(differ, "before")
			}
			if wanted {
				is[key] = hidden(differ, "after")
			}
		}
	}
	for _, object := range []map[string]any{before, after} {
		unstructured.RemoveNestedField(object, "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")
	}
}

// hiddenValue stands for a value of a Secret.
const hiddenValue = "***"

func hidden(differs bool, when string) string {
	if differs {
		return hiddenValue + " (" + when + ")"
	}
	return hiddenValue
}

func merged(a, b map[string]any) map[string]any {
	all := make(map[string]any, len(a)+len(b))
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

// lines are the YAML of an object; none if there is no object.
func lines(object map[string]any) []string {
	if object == nil {
		return nil
	}
	all := strings.SplitAfter(toYAML(object), "\n")
	return all[:len(all)-1] // nothing follows the last line end
}

// toYAML writes a value of JSON.
func toYAML(value any) string {
	asJSON, err := json.Marshal(value)
	if err == nil {
		if text, err := yaml.JSONToYAML(asJSON); err == nil {
			return string(text)
		}
	}
	return fmt.Sprintf("%v\n", value) // cannot happen: it came as JSON
}
