package cases

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v2"

	"akri.sh/akri/internal/finding"
	"akri.sh/akri/templating"
	"akri.sh/akri/templating/sample"
)

// Rendered is an object that would be applied.
type Rendered struct {
	templating.Object
	// For is what the object is rendered for, as in Instance cam-1.
	For string
	// From is the template, as in instanceBrokerResources[2] (node-a), or the old
	// field that it was converted from.
	From string
	// Template is what its author wrote; nil for an old field.
	Template map[string]any
	// Values are those that it was rendered with.
	Values templating.Values

	in     *Input
	origin origin
}

// Place returns the path of the template, the same for each element of a for-each, or of its
// old field.
func (r Rendered) Place() string { return cmp.Or(r.origin.field, r.Origin.Template().String()) }

// Finding returns a mistake with its place in the template. Text refers to it as written.
func (r Rendered) Finding(mistake templating.Diagnostic) finding.Finding {
	mistake.Field = r.origin.asWritten(mistake.Field)
	return finding.Finding{Position: r.origin.document.Locate(r.origin.path, mistake), Mistake: mistake.In(r.Place()).Mistake}
}

// Written returns the text of a scalar as it is written, or of its nearest existing parent.
func (r Rendered) Written(path templating.Path) string {
	return r.origin.document.Written(append(slices.Clip(r.origin.path), r.origin.asWritten(path)...))
}

// FromSample reports whether the value at a place, or the key that is the text of the
// diagnostic, may be another one with a real device.
func (r Rendered) FromSample(d templating.Diagnostic) bool {
	part, found := d.Field.In(r.Template) // if not found, the author's expression yields it
	_, isText := part.(string)
	return (!found || isText && d.Text == "") && r.in.fromSample(part)
}

// Objects returns the objects that would be applied: Instance by Instance in the order of the
// input, then the configuration level. Objects have the namespace of the
// Configuration, if it is set. Objects that fail to render are omitted or, if the input was
// loaded partly, without the values that failed; the mistakes say why.
func (in *Input) Objects() ([]Rendered, []finding.Finding) {
	var all []Rendered
	var mistakes []finding.Finding
	render := func(l list, level templating.Level, of string, values templating.Values) {
		objects, diags := l.set.Render(values)
		for _, object := range objects {
			rendered := in.rendered(l.from[object.Origin.Index], object, of)
			rendered.Values = values
			all = append(all, rendered)
		}
		mistakes = append(mistakes, in.locate(l, level, of, diags)...)
	}
	for _, i := range in.instances {
		render(in.perInstance, templating.InstanceLevel, "Instance "+i.Name, sample.Values(in.options, i))
	}
	if len(in.instances) > 0 {
		render(in.group, templating.ConfigurationLevel, "Configuration "+in.options.Configuration, sample.Group(in.options, in.instances))
	}
	return all, append(mistakes, in.shared(all)...)
}

func (in *Input) rendered(from origin, object templating.Object, of string) Rendered {
	r := Rendered{Object: object, For: of, From: object.Origin.String(), Template: from.template, in: in, origin: from}
	if from.field != "" {
		r.From = from.field
	}
	metadata := object.Content["metadata"].(map[string]any)
	if _, found := metadata["namespace"]; !found && in.namespace != "" {
		metadata["namespace"] = in.namespace
	}
	return r
}

// textOf returns a value that is a text, and "" for another.
func textOf(value any) string {
	text, _ := value.(string)
	return text
}

// shared returns the mistake of each template that renders an object which exists
// already.
func (in *Input) shared(objects []Rendered) []finding.Finding {
	type identity struct{ apiVersion, kind, namespace, name string }
	first := make(map[identity]Rendered, len(objects))
	reported := make(map[finding.Position]bool)
	var mistakes []finding.Finding
	for _, o := range objects {
		metadata := o.Content["metadata"].(map[string]any)
		id := identity{textOf(o.Content["apiVersion"]), textOf(o.Content["kind"]), textOf(metadata["namespace"]), textOf(metadata["name"])}
		if id.name == "" || o.Directives.OnConflict == templating.ConflictSkip {
			continue // a mistake, or intended
		}
		other, found := first[id]
		if !found {
			first[id] = o
			continue
		}
		shared := templating.Diagnostic{
			Field: templating.Keys("metadata", "name"), Cause: errors.New("the same object is rendered for several Instances"),
			Hint: "make the name depend on the device: {{ INSTANCE_NAME }}-something; or move the template to configurationBrokerResources",
		}
		if o.Origin.Level != other.Origin.Level || o.Origin.Index != other.Origin.Index {
			shared.Cause, shared.Hint = fmt.Errorf("the same object is rendered by %s", other.From), "use a different suffix in each template"
		}
		mistake := o.Finding(shared)
		if in.Sampled && templating.ReadsDevice(o.Written(shared.Field)) {
			mistake.Level = finding.Warning // the samples have the same properties
		}
		if !reported[mistake.Position] {
			reported[mistake.Position] = true
			mistakes = append(mistakes, mistake)
		}
	}
	return mistakes
}

// Render returns Objects as YAML documents, each preceded by a comment with its
// template. The same input gives the same bytes.
func (in *Input) Render() ([]byte, []finding.Finding) {
	objects, mistakes := in.Objects()
	var out bytes.Buffer
	for _, o := range objects {
		data, err := yaml.Marshal(o.Content) // not by way of JSON: the YAML library misreads some of its characters
		if err != nil {
			mistakes = append(mistakes, whole(err.Error())...)
			continue
		}
		fmt.Fprintf(&out, "---\n# %s, %s\n%s", o.For, o.From, data)
	}
	return out.Bytes(), mistakes
}
