package cases

import (
	"bytes"
	"errors"
	"fmt"

	"akri.sh/akri/templating"
	"akri.sh/akri/templating/sample"
	"akri.sh/akri/templating/source"
	"sigs.k8s.io/yaml"
)

// Rendered is an object that would be applied.
type Rendered struct {
	templating.Object
	// For is what the object is made for, as in Instance cam-1.
	For string
	// From is the template, as in instanceBrokerResources[2] (node-a), or the old
	// field that it was converted from.
	From string
	// At is where the name of the object is written.
	At source.Position

	origin origin
}

// Locate is where a field of the object is written, or what is nearest to it. Pos
// and Text of the diagnostic count inside the field, as written.
func (r Rendered) Locate(d templating.Diagnostic) source.Position {
	if r.origin.field != "" {
		d.Field = old(d.Field)
	}
	return r.origin.document.Locate(r.origin.path, d)
}

// ErrSharedName is the cause of the problem that two Instances have the same object
// made.
var ErrSharedName = errors.New("the same object is made for several Instances")

// Objects is what would be applied: Instance by Instance in the order of the
// input, then the configuration level. They have the namespace that the
// Configuration is written with. What cannot be rendered is returned as problems
// beside the rest.
func (in *Input) Objects() ([]Rendered, []error) {
	var all []Rendered
	var problems []error
	render := func(l list, level templating.Level, of string, values templating.Values) {
		objects, diags := l.set.Render(values)
		for _, object := range objects {
			all = append(all, in.rendered(l.from[object.Origin.Index], object, of))
		}
		for _, problem := range l.locate(level, diags) {
			problems = append(problems, fmt.Errorf("%s: %w", of, problem))
		}
	}
	for _, instance := range in.instances {
		render(in.perInstance, templating.InstanceLevel, "Instance "+instance.Name, sample.Values(in.options, instance))
	}
	if len(in.instances) > 0 {
		render(in.group, templating.ConfigurationLevel, "Configuration "+in.options.Configuration, sample.Group(in.options, in.instances))
	}
	return all, append(problems, shared(all)...)
}

func (in *Input) rendered(from origin, object templating.Object, of string) Rendered {
	r := Rendered{Object: object, For: of, From: object.Origin.String(), origin: from}
	if from.field != "" {
		r.From = from.field
	}
	r.At = r.Locate(templating.Diagnostic{Field: pathOf("metadata", "name")})
	metadata := object.Content["metadata"].(map[string]any)
	if _, found := metadata["namespace"]; !found && in.namespace != "" {
		metadata["namespace"] = in.namespace
	}
	return r
}

// shared reports objects that are made more than once: each template once.
func shared(objects []Rendered) []error {
	type identity struct{ apiVersion, kind, namespace, name any }
	first := make(map[identity]Rendered, len(objects))
	told := make(map[source.Position]bool)
	var problems []error
	for _, o := range objects {
		metadata := o.Content["metadata"].(map[string]any)
		id := identity{o.Content["apiVersion"], o.Content["kind"], metadata["namespace"], metadata["name"]}
		other, found := first[id]
		if !found {
			first[id] = o
			continue
		}
		if told[o.At] {
			continue
		}
		told[o.At] = true
		cause, hint := error(ErrSharedName), "make the name depend on the device: {{ INSTANCE_NAME }}-something; or move the template to configurationBrokerResources"
		if o.Origin.Level != other.Origin.Level || o.Origin.Index != other.Origin.Index {
			cause, hint = fmt.Errorf("the same object is made by %s", other.From), "let the names differ: use another suffix in each template"
		}
		problems = append(problems, Problem{At: o.At, Diagnostic: templating.Diagnostic{
			List: templating.Origin{Level: o.Origin.Level, Index: o.Origin.Index}.String(), Field: pathOf("metadata", "name"), Cause: cause, Hint: hint,
		}})
	}
	return problems
}

// Render writes Objects as YAML documents, each headed by where it comes from. It
// is stable.
func (in *Input) Render() ([]byte, []error) {
	objects, problems := in.Objects()
	var out bytes.Buffer
	for _, o := range objects {
		data, err := yaml.Marshal(o.Content)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		fmt.Fprintf(&out, "---\n# %s, %s\n%s", o.For, o.From, data)
	}
	return out.Bytes(), problems
}
