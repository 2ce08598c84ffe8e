package view

import (
	"fmt"
	"io"
	"strings"

	udiff "github.com/aymanbagabas/go-udiff"
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
	Verb   Verb          `json:"verb"`
	Object inventory.Ref `json:"object"`
	// Template is the template of the object, or empty.
	Template string `json:"template,omitempty"`
	// Why is the reason, for people; may be empty.
	Why string `json:"reason,omitempty"`
	// Before and After are the object as it is and as it would be in the API
	// server, or nil.
	Before map[string]any `json:"before,omitempty"`
	After  map[string]any `json:"after,omitempty"`
}

// Changes are the changes to the objects of one parent.
type Changes struct {
	// Parent names the Configuration or the Instance.
	Parent string `json:"parent"`
	// Sample reports whether the device is a sample, because none was found yet.
	Sample bool `json:"sample,omitempty"`
	// Problems prevent objects from being rendered.
	Problems []string `json:"problems,omitempty"`
	Objects  []Change `json:"objects,omitempty"`
}

// Preview is what diff shows.
type Preview []Changes

// NewPreview returns the changes that have an effect, with what people want to read of
// the objects. Values of Secrets are hidden.
func NewPreview(all []Changes) Preview {
	preview := Preview{}
	for _, changes := range all {
		var effective []Change
		for _, change := range changes.Objects {
			change.Before, change.After = legible(change.Before), legible(change.After)
			if change.Object.Group == "" && change.Object.Kind == "Secret" {
				redact(change.Before, change.After)
			}
			if change.Verb == Rejected {
				change.After = nil
			}
			if change.Verb != Changed || toYAML(change.Before) != toYAML(change.After) {
				effective = append(effective, change)
			}
		}
		if changes.Objects = effective; len(effective)+len(changes.Problems) > 0 {
			preview = append(preview, changes)
		}
	}
	return preview
}

// Count returns how many objects differ and how many would be rejected.
func (p Preview) Count() (differences, rejections int) {
	for _, changes := range p {
		rejections += len(changes.Problems)
		for _, change := range changes.Objects {
			if change.Verb == Rejected {
				rejections++
			} else {
				differences++
			}
		}
	}
	return differences, rejections
}

// Text prints a line for each object that would change, followed by the difference in
// YAML.
func (p Preview) Text(out io.Writer) error { return p.write(out, (*Change).unified) }

// Summary prints the lines of Text without the differences.
func (p Preview) Summary(out io.Writer) error {
	return p.write(out, func(*Change) string { return "" })
}

func (p Preview) write(out io.Writer, difference func(*Change) string) error {
	var b strings.Builder
	for _, changes := range p {
		fmt.Fprintf(&b, "# %s", changes.Parent)
		if changes.Sample {
			b.WriteString("  (SAMPLE: a sample device; none was found yet)")
		}
		b.WriteByte('\n')
		for _, problem := range changes.Problems {
			fmt.Fprintf(&b, "# ! %s\n", commented(problem))
		}
		for i := range changes.Objects {
			change := &changes.Objects[i]
			fmt.Fprintf(&b, "# %s %s  %s\n%s", signs[change.Verb], change.Object, commented(change.summary()), difference(change))
		}
	}
	return printed(out, b.String())
}

// Files returns the YAML of the objects that differ, before and after, by file name. The
// names are those of kubectl diff.
func (p Preview) Files() map[string][2]string {
	files := map[string][2]string{}
	for _, changes := range p {
		for _, change := range changes.Objects {
			object := unstructured.Unstructured{Object: change.After}
			if object.Object == nil {
				object.Object = change.Before
			}
			kind := object.GroupVersionKind()
			parts := []string{kind.Group, kind.Version, kind.Kind, object.GetNamespace(), object.GetName()}
			if change.Verb != Rejected {
				files[strings.TrimPrefix(strings.Join(parts, "."), ".")] = [2]string{document(change.Before), document(change.After)}
			}
		}
	}
	return files
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

// unified returns the difference in YAML.
func (c *Change) unified() string {
	if c.Verb == Rejected {
		return ""
	}
	name := strings.ReplaceAll(c.Object.String(), " ", "/")
	if text := udiff.Unified("live/"+name, "desired/"+name, document(c.Before), document(c.After)); text != "" {
		return text
	}
	return "#   unchanged\n" // the object is orphaned or waits
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
		for key, value := range oldValues {
			oldValues[key] = hiddenValue
			if other, inNew := newValues[key]; inNew && other != value {
				oldValues[key], newValues[key] = hiddenValue+" (before)", hiddenValue+" (after)"
			}
		}
		for key, value := range newValues {
			if value != hiddenValue+" (after)" {
				newValues[key] = hiddenValue
			}
		}
	}
	for _, object := range []map[string]any{before, after} {
		unstructured.RemoveNestedField(object, "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")
	}
}

// hiddenValue replaces a value of a Secret.
const hiddenValue = "***"

// document returns the YAML of an object, or "" for no object.
func document(object map[string]any) string {
	if object == nil {
		return ""
	}
	return toYAML(object)
}

// toYAML returns a JSON value as YAML.
func toYAML(value any) string {
	text, err := yaml.Marshal(value)
	if err != nil {
		return fmt.Sprintf("%v\n", value) // cannot happen: the value came from JSON
	}
	return string(text)
}
