package cases

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"akri.sh/akri/internal/finding"
	"akri.sh/akri/templating"
	"akri.sh/akri/templating/convert"
	"akri.sh/akri/templating/sample"
	"akri.sh/akri/templating/source"
)

// Input is a compiled Configuration and the Instances to render it for.
type Input struct {
	// Sampled is set if the Instances are samples.
	Sampled bool
	// Mistakes are what Load has found.
	Mistakes []finding.Finding

	namespace   string // as written; may be empty
	options     sample.Options
	instances   []templating.Instance
	madeUp      []string // the properties of samples that nobody has set
	perInstance list
	group       list
}

// list is one of the two lists of templates.
type list struct {
	set  *templating.Set
	from []origin // by index
}

// origin locates a template in a file.
type origin struct {
	document *source.Document
	path     templating.Path
	field    string         // the old field it was converted from, if any
	template map[string]any // as written; nil if it was converted, or is not an object
}

// Options change the Instances of an Input.
type Options struct {
	// Samples is the number of samples to use if there are no Instances; 0: two.
	Samples int
	// Properties are set on all Instances and override their own.
	Properties map[string]string
	// Partly renders what is left without the mistakes, to find what else is wrong.
	Partly bool
}

// Load compiles the only Configuration among documents for the Instances among them.
// It returns all mistakes at once.
func Load(documents []*source.Document, o Options) (*Input, []finding.Finding) {
	in := &Input{}
	var found *source.Document
	for _, d := range documents {
		switch kind, _ := d.Object()["kind"].(string); kind {
		case "Configuration":
			if found != nil {
				return nil, whole("there are two Configurations: render one at a time")
			}
			found = d
		case "Instance":
			var i instance
			decode(d.Object(), &i)
			in.instances = append(in.instances, templating.Instance{
				Name: i.Metadata.Name, Properties: i.Spec.BrokerProperties, Nodes: i.Spec.Nodes, Shared: i.Spec.Shared,
			})
		default:
			return nil, whole(fmt.Sprintf("a %q is neither a Configuration nor an Instance", kind))
		}
	}
	if found == nil {
		return nil, whole("there is no Configuration")
	}
	var c configuration
	c.Spec.Capacity = 1
	spec, _ := found.Object()["spec"].(map[string]any)
	decode(found.Object(), &c)
	decode(spec["brokerSpec"], &c.Spec.Fields)
	mistakes := in.compile(found, spec, c.Spec.Fields, o.Partly)
	if len(mistakes) > 0 && !o.Partly {
		return nil, mistakes
	}
	if o.Partly && len(validation.IsDNS1123Label(sample.InstanceName(c.Metadata.Name, 0, false))) > 0 {
		c.Metadata.Name = "configuration" // what is rendered must not repeat its mistake
	}
	in.Mistakes = mistakes
	in.setInstances(c, o)
	return in, mistakes
}

// whole returns a mistake in the documents as a whole.
func whole(cause string) []finding.Finding {
	return []finding.Finding{{Mistake: finding.Mistake{Cause: cause}}}
}

func (in *Input) compile(d *source.Document, spec map[string]any, fields convert.Fields, partly bool) []finding.Finding {
	var mistakes []finding.Finding
	old, err := convert.BrokerResources(fields)
	if err != nil {
		path := templating.Keys("spec")
		if found, ok := errors.AsType[*convert.FieldError](err); ok {
			path, err = append(path, templating.Keys(found.Field...)...), found.Err
		}
		mistakes = append(mistakes, d.Finding(templating.Diagnostic{Field: path, Cause: err}))
	}
	compile := func(level templating.Level, converted []convert.Resource) list {
		var l list
		own := templatesOf(spec, level)
		for i := range own {
			path := append(templating.Keys("spec", level.String()), templating.Index(i))
			l.from = append(l.from, origin{document: d, path: path, template: own[i]})
		}
		for _, r := range converted {
			path := append(templating.Keys("spec"), templating.Keys(r.From...)...)
			if spec[r.From[len(r.From)-1]] != nil { // as in older versions
				path = templating.Keys("spec", r.From[len(r.From)-1])
			}
			l.from = append(l.from, origin{document: d, path: path, field: r.From.String()})
		}
		compileList := templating.Compile
		if partly {
			compileList = templating.CompilePartly
		}
		set, diags := compileList(level, append(slices.Clip(own), convert.Templates(converted)...))
		l.set = set
		mistakes = append(mistakes, in.locate(l, level, "", diags)...)
		return l
	}
	in.perInstance = compile(templating.InstanceLevel, old.Instance)
	in.group = compile(templating.ConfigurationLevel, old.Configuration)
	if name, found := spec["displayName"].(string); found {
		_, diags := templating.CompileText(name)
		for _, diag := range diags {
			diag.Field = templating.Keys("spec", "displayName")
			mistakes = append(mistakes, d.Finding(diag))
		}
	}
	return mistakes
}

// locate returns diagnostics with their positions. of is what was rendered, if anything. What
// depends on the properties of samples is a warning.
func (in *Input) locate(l list, level templating.Level, of string, diags templating.Diagnostics) []finding.Finding {
	mistakes := make([]finding.Finding, 0, len(diags))
	add := func(d templating.Diagnostic, template string, at finding.Position) {
		found := d.In(template)
		found.Position, found.For = at, of
		mistakes = append(mistakes, found)
	}
	for i, from := range l.from {
		for _, d := range diags.Of(level, i) {
			template := d.Origin.String()
			if from.field != "" {
				template, d.Field = d.Origin.Of(from.field), from.asWritten(d.Field)
			}
			add(d, template, from.document.Locate(from.path, d))
			found, written := &mistakes[len(mistakes)-1], from.document.Written(append(slices.Clip(from.path), d.Field...))
			if found.Hint == "quote it" && written != "" {
				found.Hint = fmt.Sprintf("quote it: %q", written)
			}
			text := []any{cmp.Or(d.Text, written)}
			if len(d.Field) > 0 {
				text = append(text, d.Field[len(d.Field)-1].Key)
			}
			if of != "" && (in.Sampled && text[0] == "" || in.fromSample(text)) {
				found.Level = finding.Warning
			}
		}
	}
	for _, d := range diags {
		if d.Origin.Index < 0 { // the list as a whole
			add(d, level.String(), l.from[0].document.Locate(templating.Keys("spec", level.String()), d))
		}
	}
	return mistakes
}

// asWritten returns the path in the template or in the old field, which is the spec of the
// template that it was converted to.
func (o origin) asWritten(path templating.Path) templating.Path {
	switch {
	case o.field == "":
		return path
	case len(path) > 0 && path[0] == templating.Key("spec"):
		return path[1:]
	}
	return nil
}

func (in *Input) setInstances(c configuration, o Options) {
	in.namespace = c.Metadata.Namespace
	in.options = sample.Options{
		Configuration: c.Metadata.Name, Namespace: c.Metadata.Namespace, Capacity: c.Spec.Capacity,
		Properties: c.Spec.BrokerProperties, Keys: append(in.perInstance.set.PropertyKeys(), in.group.set.PropertyKeys()...),
	}
	if in.options.Namespace == "" {
		in.options.Namespace = "default"
	}
	if len(in.instances) == 0 {
		in.Sampled = true
		if o.Samples == 0 {
			o.Samples = 2
		}
		options := in.options
		options.Properties = map[string]string{}
		maps.Copy(options.Properties, c.Spec.SampleProperties)
		maps.Copy(options.Properties, c.Spec.BrokerProperties) // as with real devices, these win
		in.instances = sample.Instances(options, o.Samples)
		in.madeUp = slices.DeleteFunc(slices.Clone(options.Keys), func(key string) bool {
			_, set := options.Properties[key]
			_, given := o.Properties[key]
			return set || given
		})
	}
	for i := range in.instances {
		properties := make(map[string]string)
		maps.Copy(properties, in.instances[i].Properties)
		maps.Copy(properties, o.Properties)
		in.instances[i].Properties = properties
	}
}

// Shared returns the same with samples that two nodes see each.
func (in *Input) Shared() *Input {
	shared := *in
	shared.instances = slices.Clone(in.instances)
	for i := range shared.instances {
		shared.instances[i].Name = sample.InstanceName(in.options.Configuration, i, true)
		shared.instances[i].Nodes, shared.instances[i].Shared = sample.Nodes(i, true), true
	}
	return &shared
}

// fromSample reports whether a part of a template reads a property that is made up.
func (in *Input) fromSample(part any) bool {
	return templating.ReadsDevice(part) && templating.AnyText(part, func(text string) bool {
		return slices.ContainsFunc(in.madeUp, func(key string) bool { return strings.Contains(text, key) })
	})
}

// Name returns the name of the Configuration.
func (in *Input) Name() string { return in.options.Configuration }
