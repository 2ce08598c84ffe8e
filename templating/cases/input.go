package cases

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"akri.sh/akri/templating"
	"akri.sh/akri/templating/convert"
	"akri.sh/akri/templating/sample"
	"akri.sh/akri/templating/source"
)

// configuration is the part of a Configuration that decides what is rendered.
type configuration struct {
	Metadata struct {
		Name       string `json:"name"`
		Namespace  string `json:"namespace"`
		Generation int64  `json:"generation"`
	} `json:"metadata"`
	Spec struct {
		Capacity         *int64            `json:"capacity"`
		BrokerProperties map[string]string `json:"brokerProperties"`
		BrokerSpec       struct {
			BrokerPodSpec map[string]any `json:"brokerPodSpec"`
			BrokerJobSpec map[string]any `json:"brokerJobSpec"`
		} `json:"brokerSpec"`
		InstanceServiceSpec          map[string]any   `json:"instanceServiceSpec"`
		ConfigurationServiceSpec     map[string]any   `json:"configurationServiceSpec"`
		InstanceBrokerResources      []map[string]any `json:"instanceBrokerResources"`
		ConfigurationBrokerResources []map[string]any `json:"configurationBrokerResources"`
	} `json:"spec"`
}

// instance is the part of an Instance that templates can see.
type instance struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		BrokerProperties map[string]string `json:"brokerProperties"`
		Nodes            []string          `json:"nodes"`
		Shared           bool              `json:"shared"`
	} `json:"spec"`
}

// Input is a compiled Configuration and the Instances to render it for.
type Input struct {
	// Sampled says that the Instances are stand-ins.
	Sampled bool

	options     sample.Options
	instances   []templating.Instance
	perInstance list
	group       list
}

// list is one of the two lists of templates.
type list struct {
	set  *templating.Set
	from []origin // by index
}

// origin is where a template is written.
type origin struct {
	document *source.Document
	path     templating.Path
	field    string // the old field it was converted from, if any
}

// Problem is something wrong with a Configuration, with its place in a file.
type Problem struct {
	At         source.Position
	Diagnostic templating.Diagnostic
}

func (p Problem) Error() string { return p.At.String() + ": " + p.Diagnostic.Error() }

// Unwrap gives the diagnostic.
func (p Problem) Unwrap() error { return p.Diagnostic }

// Options change the Instances of an Input.
type Options struct {
	// Samples is how many stand-ins to use when there are no Instances; 0: two.
	Samples int
	// Properties are set on all Instances, over their own.
	Properties map[string]string
}

// Load compiles the one Configuration among documents for the Instances among
// them. What is wrong with the templates is returned as problems, all at once.
func Load(documents []*source.Document, o Options) (*Input, []error) {
	in := &Input{}
	var found *source.Document
	for _, d := range documents {
		switch kind, _ := d.Object()["kind"].(string); kind {
		case "Configuration":
			if found != nil {
				return nil, []error{errors.New("there are two Configurations, render one at a time")}
			}
			found = d
		case "Instance":
			i, err := decode[instance](d.Object())
			if err != nil {
				return nil, []error{err}
			}
			in.instances = append(in.instances, templating.Instance{
				Name: i.Metadata.Name, Properties: i.Spec.BrokerProperties, Nodes: i.Spec.Nodes, Shared: i.Spec.Shared,
			})
		default:
			return nil, []error{fmt.Errorf("a %q is neither a Configuration nor an Instance", kind)}
		}
	}
	if found == nil {
		return nil, []error{errors.New("there is no Configuration")}
	}
	c, err := decode[configuration](found.Object())
	if err != nil {
		return nil, []error{err}
	}
	problems := in.compile(found, c)
	if len(problems) > 0 {
		return nil, problems
	}
	in.setInstances(c, o)
	return in, nil
}

// decode reads what matters of an object.
func decode[T any](object map[string]any) (value T, err error) {
	data, err := json.Marshal(object)
	if err != nil {
		return value, err
	}
	if err := json.Unmarshal(data, &value); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return value, fmt.Errorf("%s must be %s, not %s", wrong.Field, wrong.Type, wrong.Value)
		}
		return value, err
	}
	return value, nil
}

func (in *Input) compile(d *source.Document, c configuration) []error {
	old, err := convert.BrokerResources(convert.Fields{
		BrokerPodSpec: c.Spec.BrokerSpec.BrokerPodSpec, BrokerJobSpec: c.Spec.BrokerSpec.BrokerJobSpec,
		InstanceServiceSpec: c.Spec.InstanceServiceSpec, ConfigurationServiceSpec: c.Spec.ConfigurationServiceSpec,
		Generation: max(c.Metadata.Generation, 1),
	})
	if err != nil {
		return []error{err}
	}
	var problems []error
	compile := func(level templating.Level, own []map[string]any, converted []convert.Resource) list {
		var l list
		for i := range own {
			l.from = append(l.from, origin{document: d, path: templating.Path{templating.Key("spec"), templating.Key(level.String()), templating.Index(i)}})
		}
		for _, r := range converted {
			path := templating.Path{templating.Key("spec")}
			for _, key := range strings.Split(r.From, ".") {
				path = append(path, templating.Key(key))
			}
			l.from = append(l.from, origin{document: d, path: path, field: r.From})
		}
		templates := written(d, level, len(own))
		set, diags := templating.Compile(level, append(templates, convert.Templates(converted)...))
		l.set = set
		problems = append(problems, l.locate(level, diags)...)
		return l
	}
	in.perInstance = compile(templating.InstanceLevel, c.Spec.InstanceBrokerResources, old.Instance)
	in.group = compile(templating.ConfigurationLevel, c.Spec.ConfigurationBrokerResources, old.Configuration)
	return problems
}

// written is the templates as the document has them: decode made floats of whole
// numbers.
func written(d *source.Document, level templating.Level, n int) []map[string]any {
	templates := make([]map[string]any, n)
	spec, _ := d.Object()["spec"].(map[string]any)
	values, _ := spec[level.String()].([]any)
	for i := range templates {
		templates[i], _ = values[i].(map[string]any)
	}
	return templates
}

// locate gives diagnostics their places.
func (l list) locate(level templating.Level, diags templating.Diagnostics) []error {
	problems := make([]error, 0, len(diags))
	for i, from := range l.from {
		for _, d := range diags.Of(level, i) {
			if from.field != "" {
				d.List, d.Field = from.field, old(d.Field)
			}
			problems = append(problems, Problem{At: from.document.Locate(from.path, d), Diagnostic: d})
		}
	}
	if len(problems) == 0 { // about the list as a whole
		for _, d := range diags {
			problems = append(problems, d)
		}
	}
	return problems
}

// old is the path in an old field for a path in the template made of it: the
// field is the template's spec.
func old(path templating.Path) templating.Path {
	if len(path) > 0 && path[0] == templating.Key("spec") {
		return path[1:]
	}
	return nil
}

func (in *Input) setInstances(c configuration, o Options) {
	in.options = sample.Options{
		Configuration: c.Metadata.Name, Namespace: c.Metadata.Namespace, Capacity: 1,
		Properties: c.Spec.BrokerProperties, Keys: append(in.perInstance.set.PropertyKeys(), in.group.set.PropertyKeys()...),
	}
	if in.options.Namespace == "" {
		in.options.Namespace = "default"
	}
	if c.Spec.Capacity != nil {
		in.options.Capacity = *c.Spec.Capacity
	}
	if len(in.instances) == 0 {
		in.Sampled = true
		if o.Samples == 0 {
			o.Samples = 2
		}
		in.instances = sample.Instances(in.options, o.Samples)
	}
	for i := range in.instances {
		properties := make(map[string]string)
		for _, from := range []map[string]string{in.instances[i].Properties, o.Properties} {
			for key, value := range from {
				properties[key] = value
			}
		}
		in.instances[i].Properties = properties
	}
}
