package view

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/internal/text"
	"akri.sh/akri/templating"
)

// Explanation describes the origin of an object and its values.
type Explanation struct {
	Object string `json:"object"`
	// Dependent is the requested object, if it is a dependent of Object.
	Dependent     string `json:"dependent,omitempty"`
	Configuration string `json:"configuration"`
	Generation    int64  `json:"generation"`
	Instance      string `json:"instance,omitempty"`
	// Template is the path of the template in the Configuration.
	Template string `json:"template,omitempty"`
	// Element is the element of for-each.
	Element string `json:"element,omitempty"`
	// State is the state that the controller reports.
	State         string      `json:"state"`
	Notes         []string    `json:"notes,omitempty"`
	Fields        []field     `json:"fields,omitempty"`
	Directives    []directive `json:"directives,omitempty"`
	OtherManagers []Manager   `json:"otherManagers,omitempty"`
}

// field is a field with an expression.
type field struct {
	Field string `json:"field"`
	// Key reports whether the expression yields the field's name, not its value.
	Key    bool    `json:"key,omitempty"`
	Text   string  `json:"template"`
	Value  any     `json:"value,omitempty"`
	Fault  string  `json:"fault,omitempty"`
	Inputs []input `json:"inputs,omitempty"`
}

// input is a variable or property that an expression reads.
type input struct {
	Name   string `json:"name"`
	Value  any    `json:"value"`
	Source string `json:"source"`
}

// directive is an annotation under akri.sh/ on a template.
type directive struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Manager is a field manager other than the controller.
type Manager struct {
	Name      string   `json:"name"`
	Operation string   `json:"operation"`
	Fields    []string `json:"fields"`
	// More is the number of further fields.
	More int `json:"more,omitempty"`
}

// Text prints an explanation.
func (e *Explanation) Text(out io.Writer) error {
	var b strings.Builder
	if e.Dependent != "" {
		fmt.Fprintf(&b, "%s is owned by %s:\n\n", e.Dependent, e.Object)
	}
	fmt.Fprintln(&b, e.Object)
	template := fmt.Sprintf("Configuration %s, generation %d", e.Configuration, e.Generation)
	if e.Template != "" {
		template = e.Template + " of " + template
	}
	fmt.Fprintf(&b, "  template   %s\n", template)
	if e.Instance != "" {
		fmt.Fprintf(&b, "  for        Instance %s\n", e.Instance)
	}
	if e.Element != "" {
		fmt.Fprintf(&b, "  for each   %s\n", e.Element)
	}
	fmt.Fprintf(&b, "  state      %s\n", e.State)
	for _, note := range e.Notes {
		fmt.Fprintf(&b, "  note       %s\n", indented(note, 13))
	}
	writeFields(&b, e.Fields)
	if len(e.Directives) > 0 {
		b.WriteString("\nDirectives:\n")
		for _, d := range e.Directives {
			fmt.Fprintf(&b, "  %s: %s\n", d.Name, d.Value)
		}
	}
	if len(e.OtherManagers) > 0 {
		b.WriteString("\nFields of other managers:\n")
		for _, manager := range e.OtherManagers {
			fmt.Fprintf(&b, "  %s (%s): %s", manager.Name, manager.Operation, strings.Join(manager.Fields, ", "))
			if manager.More > 0 {
				fmt.Fprintf(&b, " and %d more", manager.More)
			}
			b.WriteByte('\n')
		}
	}
	return printed(out, b.String())
}

func writeFields(b *strings.Builder, fields []field) {
	if len(fields) == 0 {
		return
	}
	b.WriteString("\nFields with expressions:\n")
	for _, f := range fields {
		name := f.Field
		if f.Key {
			name = "key " + name
		}
		if f.Fault != "" {
			fmt.Fprintf(b, "  %s has no value: %s\n", name, indented(f.Fault, 6))
		} else {
			fmt.Fprintf(b, "  %s = %s\n", name, short(f.Value))
		}
		fmt.Fprintf(b, "      %s\n", indented(f.Text, 6))
		for _, read := range f.Inputs {
			if read.Value == nil {
				fmt.Fprintf(b, "      %s is not set  (%s)\n", read.Name, read.Source)
				continue
			}
			fmt.Fprintf(b, "      %s = %s  (%s)\n", read.Name, short(read.Value), read.Source)
		}
	}
}

// indented indents all lines of s but the first.
func indented(s string, by int) string {
	return strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n"+strings.Repeat(" ", by))
}

// maxValueBytes limits the part of a value that is shown.
const maxValueBytes = 100

// short returns a value on one line, truncated.
func short(value any) string {
	line, ok := value.(string)
	if !ok || strings.Contains(line, "\n") {
		asJSON, err := json.Marshal(value)
		if err != nil {
			return fmt.Sprint(value)
		}
		line = string(asJSON)
	}
	if line == "" {
		return `""`
	}
	return text.Truncate(line, maxValueBytes)
}

// SetExpressions sets the fields with expressions and where their inputs come from.
// Values in the data of a Secret are hidden, and so are their inputs.
func (e *Explanation) SetExpressions(expressions []templating.Expression, configuration *v0.Configuration, kind string) {
	e.Fields = make([]field, 0, len(expressions))
	for _, expression := range expressions {
		f := field{Field: expression.Field.String(), Key: expression.Key, Text: expression.Text, Value: expression.Value}
		if expression.Fault != nil {
			f.Fault = expression.Fault.Error()
		}
		secret := kind == "Secret" && len(expression.Field) > 0 && slices.Contains([]string{"data", "stringData"}, expression.Field[0].Key)
		for _, read := range expression.Reads {
			in := input{Name: read.Name, Value: read.Value, Source: sourceOf(read, configuration)}
			if secret && in.Value != nil {
				in.Value = hiddenValue
			}
			f.Inputs = append(f.Inputs, in)
		}
		if secret && f.Value != nil && !f.Key {
			f.Value = hiddenValue
		}
		e.Fields = append(e.Fields, f)
	}
}

// sourceOf describes where an input comes from.
func sourceOf(read templating.Input, configuration *v0.Configuration) string {
	if read.Property != "" {
		if _, ok := configuration.Spec.BrokerProperties[read.Property]; ok {
			return "spec.brokerProperties of the Configuration"
		}
		return "property of the device, from " + configuration.Spec.DiscoveryHandler.Name
	}
	name, _, _ := strings.Cut(read.Name, ".")
	switch name {
	case "BROKER_NODES":
		return "the first nodes of the Instance, as many as it has slots"
	case "CAPACITY":
		return "spec.capacity of the Configuration"
	case "CONFIGURATION_NAME", "NAMESPACE":
		return "metadata of the Configuration"
	case "INSTANCE_NAME":
		return "metadata.name of the Instance"
	case "INSTANCE_PROPERTIES":
		return "all properties of the device"
	case "INSTANCES", "INSTANCE":
		return "the Instances of the Configuration"
	case "LABEL_SELECTOR":
		return "labels of all objects of the same parent"
	case "NODE", "NODES":
		return "nodes that see the device"
	case "PLACEHOLDER", "RESOURCE_NAME":
		return "the resource that a container requests to use the device"
	case "SHARED":
		return "spec.shared of the Instance"
	}
	return "variable"
}

// SetDirectives sets the directives that differ from their defaults.
func (e *Explanation) SetDirectives(d templating.Directives) {
	e.Directives = nil
	add := func(differs bool, name, value string) {
		if differs {
			e.Directives = append(e.Directives, directive{v0.Domain + "/" + name, value})
		}
	}
	add(d.When != "", "when", d.When)
	add(d.ForEach != "", "for-each", string(d.ForEach))
	add(d.Once, "once", "true")
	add(d.OnConflict != templating.ConflictFail, "on-conflict", string(d.OnConflict))
	add(d.OnImmutable != templating.ImmutableFail, "on-immutable", string(d.OnImmutable))
	add(d.DeletionPolicy != templating.DeletionDelete, "deletion-policy", string(d.DeletionPolicy))
	if d.ReadyWhen != nil {
		add(true, "ready-when", d.ReadyWhen.String())
	}
}

// maxFields limits the fields that are listed for one manager.
const maxFields = 6

// OtherManagers returns the field managers of an object except the controller. For a
// subresource, such as status, it lists the subresource instead of the fields.
func OtherManagers(entries []metav1.ManagedFieldsEntry) []Manager {
	var managers []Manager
	for _, entry := range entries {
		if ownership.IsApplied(entry) {
			continue
		}
		manager := Manager{Name: entry.Manager, Operation: string(entry.Operation)}
		if entry.Subresource != "" {
			manager.Fields = []string{entry.Subresource}
		} else {
			manager.Fields = ownedFields(entry)
			if n := len(manager.Fields); n > maxFields {
				manager.Fields, manager.More = manager.Fields[:maxFields], n-maxFields
			}
		}
		managers = append(managers, manager)
	}
	return managers
}

func ownedFields(entry metav1.ManagedFieldsEntry) []string {
	if entry.FieldsV1 == nil {
		return nil
	}
	var set fieldpath.Set
	if err := set.FromJSON(strings.NewReader(string(entry.FieldsV1.GetRawBytes()))); err != nil {
		return []string{"unreadable: " + err.Error()}
	}
	var fields []string
	set.Leaves().Iterate(func(path fieldpath.Path) {
		fields = append(fields, strings.TrimPrefix(path.String(), "."))
	})
	return fields
}
