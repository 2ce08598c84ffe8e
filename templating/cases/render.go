package cases

import (
	"bytes"
	"fmt"

	"akri.sh/akri/templating"
	"akri.sh/akri/templating/sample"
	"sigs.k8s.io/yaml"
)

// Render writes what would be applied as YAML documents: Instance by Instance in
// the order of the input, then the configuration level. It is stable. What cannot
// be rendered is returned as problems beside the rest.
func (in *Input) Render() ([]byte, []error) {
	var out bytes.Buffer
	var problems []error
	render := func(l list, level templating.Level, of string, values templating.Values) {
		objects, diags := l.set.Render(values)
		for _, object := range objects {
			if err := writeObject(&out, l.from[object.Origin.Index], object, of); err != nil {
				problems = append(problems, err)
			}
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
	return out.Bytes(), problems
}

// writeObject writes one document, headed by where it comes from.
func writeObject(out *bytes.Buffer, from origin, object templating.Object, of string) error {
	data, err := yaml.Marshal(object.Content)
	if err != nil {
		return err
	}
	name := object.Origin.String()
	if from.field != "" {
		name = from.field
	}
	fmt.Fprintf(out, "---\n# %s, %s\n%s", of, name, data)
	return nil
}
