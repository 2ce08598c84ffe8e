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
	"akri.sh/akri/templating"
)

// Explanation says where an object and the values in it come from.
type Explanation struct {
	Object string `json:"object"`
	// Asked is the object that somebody asked about, if Object made it.
	Asked         string `json:"asked,omitempty"`
	Configuration string `json:"configuration"`
	Generation    int64  `json:"generation"`
	Instance      string `json:"instance,omitempty"`
	// Template is where its author wrote it.
	Template string `json:"template,omitempty"`
	// Element is the one of for-each.
	Element string `json:"element,omitempty"`
	// State is what the controller says of it.
	State      string      `json:"state"`
	Notes      []string    `json:"notes,omitempty"`
	Fields     []Field     `json:"fields,omitempty"`
	Directives []Directive `json:"directives,omitempty"`
	Others     []Manager   `json:"others,omitempty"`
}

// Field is a field with an expression.
type Field struct {
	Field string `json:"field"`
	// Key tells that the expression makes the field's name, not its value.
	Key    bool    `json:"key,omitempty"`
	Text   string  `json:"template"`
	Value  any     `json:"value,omitempty"`
	Fault  string  `json:"fault,omitempty"`
	Inputs []Input `json:"inputs,omitempty"`
}

// Input is what an expression reads.
type Input struct {
	Name   string `json:"name"`
	Value  any    `json:"value"`
	Source string `json:"source"`
}

// Directive is an annotation under akri.sh/ on a template.
type Directive struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Manager is somebody else who owns fields of the object.
type Manager struct {
	Name      string   `json:"name"`
	Operation string   `json:"operation"`
	Fields    []string `json:"fields"`
	// More fields than those.
	More int `json:"more,omitempty"`
}

// Explain prints an explanation for people.
func Explain(out io.Writer, e Explanation) error {
	var b strings.Builder
	if e.Asked != "" {
		fmt.Fprintf(&b, "%s is made by %s:\n\n", e.Asked, e.Object)
	}
	fmt.Fprintln(&b, e.Object)
	made := fmt.Sprintf("Configuration %s, generation %d", e.Configuration, e.Generation)
	if e.Template != "" {
		made = e.Template + " of " + made
	}
	fmt.Fprintf(&b, "  made from  %s\n", made)
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
		for _, directive := range e.Directives {
			fmt.Fprintf(&b, "  %s: %s\n", directive.Name, directive.Value)
		}
	}
	if len(e.Others) > 0 {
		b.WriteString("\nFields of others:\n")
		for _, manager := range e.Others {
			fmt.Fprintf(&b, "  %s (%s): %s", manager.Name, manager.Operation, strings.Join(manager.Fields, ", "))
			if manager.More > 0 {
				fmt.Fprintf(&b, " and %d more", manager.More)
			}
			b.WriteByte('\n')
		}
	}
	if _, err := io.WriteString(out, b.String()); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

func writeFields(b *strings.Builder, fields []Field) {
	if len(fields) == 0 {
		return
	}
	b.WriteString("\nFields with expressions:\n")
	for _, field := range fields {
		name := field.Field
		if field.Key {
			name = "key " + name
		}
		if field.Fault != "" {
			fmt.Fprintf(b, "  %s has no value: %s\n", name, indented(field.Fault, 6))
		} else {
			fmt.Fprintf(b, "  %s = %s\n", name, short(field.Value))
		}
		fmt.Fprintf(b, "      %s\n", indented(field.Text, 6))
		for _, input := range field.Inputs {
			if input.Value == nil {
				fmt.Fprintf(b, "      %s is not there  (%s)\n", input.Name, input.Source)
				continue
			}
			fmt.Fprintf(b, "      %s = %s  (%s)\n", input.Name, short(input.Value), input.Source)
		}
	}
}

func indented(text string, by int) string {
	return strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+strings.Repeat(" ", by))
}

// longestValue is how much of a value is shown in a line.
const longestValue = 100

// short is a value on one line.
func short(value any) string {
	text, isText := value.(string)
	if !isText || strings.Contains(text, "\n") {
		asJSON, err := json.Marshal(value)
		if err != nil {
			return fmt.Sprint(value)
		}
		text = string(asJSON)
	}
	if text == "" {
		return `""`
	}
	if runes := []rune(text); len(runes) > longestValue {
		return string(runes[:longestValue]) + "…"
	}
	return text
}

// Fields says of expressions where their inputs come from. Values that end up in
// the data of a Secret are hidden, and their inputs with them.
func Fields(expressions []templating.Expression, configuration *v0.Configuration, kind string) []Field {
	fields := make([]Field, 0, len(expressions))
	for _, expression := range expressions {
		field := Field{Field: expression.Field.String(), Key: expression.Key, Text: expression.Text, Value: expression.Value}
		if expression.Fault != nil {
			field.Fault = expression.Fault.Error()
		}
		secret := kind == "Secret" && len(expression.Field) > 0 && slices.Contains([]string{"data", "stringData"}, expression.Field[0].Key)
		for _, read := range expression.Reads {
			input := Input{Name: read.Name, Value: read.Value, Source: sourceOf(read, configuration)}
			if secret && input.Value != nil {
				input.Value = hiddenValue
			}
			field.Inputs = append(field.Inputs, input)
		}
		if secret && field.Value != nil && !field.Key {
			field.Value = hiddenValue
		}
		fields = append(fields, field)
	}
	return fields
}

// sourceOf says in words where an input comes from.
func sourceOf(input templating.Input, configuration *v0.Configuration) string {
	if input.Property != "" {
		if _, written := configuration.Spec.BrokerProperties[input.Property]; written {
			return "spec.brokerProperties of the Configuration"
		}
		return "property of the device, from " + configuration.Spec.DiscoveryHandler.Name
	}
	name, _, _ := strings.Cut(input.Name, ".")
	switch name {
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
		return "labels of all objects made with this one"
	case "NODE", "NODES":
		return "nodes that see the device"
	case "PLACEHOLDER", "RESOURCE_NAME":
		return "the resource that a container asks for to get the device"
	case "SHARED":
		return "spec.shared of the Instance"
	}
	return "variable"
}

// Directives are those of a template that differ from what holds without them.
func Directives(d templating.Directives) []Directive {
	var list []Directive
	add := func(differs bool, name, value string) {
		if differs {
			list = append(list, Directive{v0.Domain + "/" + name, value})
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
	return list
}

// mostOfOthers is how many fields of one manager are named.
const mostOfOthers = 6

// Others are the field managers of an object beside the controller. Of a
// subresource, such as status, its name is told and no fields.
func Others(entries []metav1.ManagedFieldsEntry) []Manager {
	var managers []Manager
	for _, entry := range entries {
		if entry.Manager == v0.FieldManagerController && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" {
			continue
		}
		manager := Manager{Name: entry.Manager, Operation: string(entry.Operation)}
		if entry.Subresource != "" {
			manager.Fields = []string{entry.Subresource}
		} else {
			manager.Fields = ownedFields(entry)
			if n := len(manager.Fields); n > mostOfOthers {
				manager.Fields, manager.More = manager.Fields[:mostOfOthers], n-mostOfOthers
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
