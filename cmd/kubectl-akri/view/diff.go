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

// Verb names the change to an object.
type Verb string

// The verbs, as printed.
const (
	Created   Verb = "created"
	Changed   Verb = "changed"
	Recreated Verb = "deleted and recreated"
	Deleted   Verb = "deleted"
	Orphaned  Verb = "orphaned" // the object is kept, but Akri no longer manages it
	Waiting   Verb = "waiting"  // another change must happen first
	Rejected  Verb = "rejected" // the object cannot be applied
)

// signs are the first characters of the line of each verb.
var signs = map[Verb]string{Created: "+", Changed: "~", Recreated: "±", Deleted: "-", Orphaned: "-", Waiting: "…", Rejected: "!"}

// Change is the change to one object.
type Change struct {
	Verb   Verb
	Object inventory.Ref
	// Template is the template of the object, or empty.
	Template string
	// Why is the reason, for people; may be empty.
	Why string
	// Before and After are the object as it is and as it would be in the API
	// server, or nil.
	Before, After map[string]any
}

// Changes are the changes to the objects of one parent.
type Changes struct {
	// Parent names the Configuration or the Instance.
	Parent string
	// Sample reports whether the device is a sample, because none was found yet.
	Sample bool
	// Problems prevent objects from being rendered.
	Problems []string
	Objects  []Change
}

// Diff prints a line for each object that would change, followed by the difference
// in YAML. It returns how many objects differ and how many would be rejected. Values
// of Secrets are not shown.
func Diff(out io.Writer, all []Changes) (differences, rejections int, err error) {
	var b strings.Builder
	for _, changes := range all {
		var body strings.Builder
		for _, problem := range changes.Problems {
			rejections++
			fmt.Fprintf(&body, "# ! %s\n", commented(problem))
		}
		for _, change := range changes.Objects {
			text, err := change.text()
			if err != nil {
				return differences, rejections, err
			}
			switch {
			case change.Verb == Rejected:
				rejections++
			case text == "":
				continue // applying the object again would change nothing
			default:
				differences++
			}
			fmt.Fprintf(&body, "# %s %s  %s\n%s", signs[change.Verb], change.Object, commented(change.summary()), text)
		}
		if body.Len() == 0 {
			continue
		}
		fmt.Fprintf(&b, "# %s", changes.Parent)
		if changes.Sample {
			b.WriteString("  (SAMPLE: a sample device; none was found yet)")
		}
		b.WriteString("\n" + body.String())
	}
	if _, err := io.WriteString(out, b.String()); err != nil {
		return differences, rejections, fmt.Errorf("print: %w", err)
	}
	return differences, rejections, nil
}

// summary returns the change on one line: the verb, the reason and the template.
func (c *Change) summary() string {
	text := string(c.Verb)
	if c.Why != "" {
		text += ": " + c.Why
	}
	if c.Template != "" {
		text += "  (" + c.Template + ")"
	}
	return text
}

// commented continues a comment on the further lines of a text.
func commented(text string) string { return strings.ReplaceAll(text, "\n", "\n#   ") }

// text returns the difference in YAML. It is empty for a change that has no effect.
func (c *Change) text() (string, error) {
	if c.Verb == Rejected {
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
		ToFile: "desired/" + name, B: lines(after),
		Context: 3,
	})
	if err != nil {
		return "", fmt.Errorf("compare %s: %w", c.Object, err)
	}
	if text == "" {
		text = "#   unchanged\n" // the object is orphaned or waits
	}
	return text, nil
}

func unchanged(before, after map[string]any) bool {
	return slices.Equal(lines(before), lines(after))
}

// noise lists the fields of metadata that the API server sets.
var noise = []string{"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink", "deletionTimestamp",
	"deletionGracePeriodSeconds"}

// legible returns a copy of an object without status and the metadata that the API
// server sets.
func legible(object map[string]any) map[string]any {
	if object == nil {
		return nil
	}
	object = runtime.DeepCopyJSON(object)
	delete(object, "status")
	metadata, _ := object["metadata"].(map[string]any)
	for _, f := range noise {
		delete(metadata, f)
	}
	return object
}

// redact hides the values of a Secret and marks those that differ. It also removes
// the annotation of kubectl apply, which contains the values.
func redact(before, after map[string]any) {
	for _, f := range []string{"data", "stringData"} {
		oldValues, _ := before[f].(map[string]any)
		newValues, _ := after[f].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(merged(oldValues, newValues))) {
			oldValue, inOld := oldValues[key]
			newValue, inNew := newValues[key]
			differs := inOld && inNew && oldValue != newValue
			if inOld {
				oldValues[key] = hidden(differs, "before")
			}
			if inNew {
				newValues[key] = hidden(differs, "after")
			}
		}
	}
	for _, object := range []map[string]any{before, after} {
		unstructured.RemoveNestedField(object, "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")
	}
}

// hiddenValue replaces a value of a Secret.
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

// lines returns the YAML of an object, or nil for no object.
func lines(object map[string]any) []string {
	if object == nil {
		return nil
	}
	all := strings.SplitAfter(toYAML(object), "\n")
	return all[:len(all)-1] // nothing follows the last newline
}

// toYAML returns a JSON value as YAML.
func toYAML(value any) string {
	asJSON, err := json.Marshal(value)
	if err == nil {
		if text, err := yaml.JSONToYAML(asJSON); err == nil {
			return string(text)
		}
	}
	return fmt.Sprintf("%v\n", value) // cannot happen: the value came from JSON
}
