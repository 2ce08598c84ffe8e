package templates

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/internal/finding"
	"akri.sh/akri/templating"
	"akri.sh/akri/templating/convert"
)

// Templates are the compiled broker resources of one generation of a
// Configuration. If Problems is not empty, the sets must not be used.
type Templates struct {
	// Instance and Group are rendered for each device and for all of them.
	Instance, Group *templating.Set
	// display renders spec.displayName; nil if there is none.
	display *templating.Text
	// Problems are all mistakes, in the order of the fields.
	Problems []*problem.Error

	uid        types.UID
	generation int64
	// names are the places where the templates were written.
	names map[templating.Level][]string
}

// Kinds returns all kinds that the templates name.
func (t *Templates) Kinds() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	if t.Instance != nil {
		kinds = append(kinds, t.Instance.Kinds()...)
	}
	if t.Group != nil {
		kinds = append(kinds, t.Group.Kinds()...)
	}
	return kinds
}

// Compile compiles the broker resources of a Configuration, including those that its
// legacy fields are converted into. Kinds that the policy does not allow are among the Problems.
func Compile(configuration *v0.Configuration, policy confine.Policy) *Templates {
	compiled := &Templates{uid: configuration.UID, generation: configuration.Generation, names: map[templating.Level][]string{}}
	converted, err := legacyFields(configuration)
	if err != nil {
		place := "spec"
		if found, ok := errors.AsType[*convert.FieldError](err); ok {
			place, err = place+"."+found.Field.String(), found.Err
		}
		compiled.Problems = []*problem.Error{invalid(place, err)}
		return compiled
	}
	spec := configuration.Spec
	compiled.Instance = compiled.compile(policy, templating.InstanceLevel, spec.InstanceBrokerResources, converted.Instance)
	compiled.Group = compiled.compile(policy, templating.ConfigurationLevel, spec.ConfigurationBrokerResources, converted.Configuration)
	compiled.compileDisplayName(spec.DisplayName)
	return compiled
}

// compile compiles one list: the broker resources, followed by those that the legacy
// fields were converted into.
func (t *Templates) compile(
	policy confine.Policy, level templating.Level, written []v0.BrokerResource, converted []convert.Resource,
) *templating.Set {
	list := make([]map[string]any, 0, len(written)+len(converted))
	for i := range written {
		t.names[level] = append(t.names[level], fmt.Sprintf("%s[%d]", level, i))
		content, err := written[i].Content()
		if err != nil {
			t.Problems = append(t.Problems, invalid(t.Place(templating.Origin{Level: level, Index: i}), err))
		}
		list = append(list, content)
	}
	list = append(list, convert.Templates(converted)...)
	for _, resource := range converted {
		t.names[level] = append(t.names[level], resource.From.String())
	}
	for i, template := range list {
		apiVersion, _ := template["apiVersion"].(string)
		kind, _ := template["kind"].(string)
		if err := policy.Kind(schema.FromAPIVersionAndKind(apiVersion, kind)); err != nil {
			t.Problems = append(t.Problems, problem.At(t.Place(templating.Origin{Level: level, Index: i})+".kind", err))
		}
	}
	set, diagnostics := templating.Compile(level, list)
	t.Problems = append(t.Problems, t.Diagnosed(v0.ReasonInvalidTemplate, diagnostics)...)
	return set
}

// Name returns the place of a template in the Configuration.
func (t *Templates) Name(level templating.Level, index int) string {
	if names := t.names[level]; index < len(names) {
		return names[index]
	}
	return fmt.Sprintf("%s[%d]", level, index)
}

// Place returns the path of an origin, with the template named as the author knows it.
func (t *Templates) Place(origin templating.Origin) string {
	if origin.Index < 0 {
		return "spec." + origin.String()
	}
	return "spec." + origin.Of(t.Name(origin.Level, origin.Index))
}

// Diagnosed returns the problems of diagnostics. Many can read a problem's message, so
// it does not contain what the author wrote into a Secret.
func (t *Templates) Diagnosed(reason string, diagnostics templating.Diagnostics) []*problem.Error {
	var problems []*problem.Error
	for _, diagnostic := range diagnostics {
		mistake := diagnostic.Redact().In(t.Place(diagnostic.Origin)).Quoting()
		problems = append(problems, &problem.Error{Mistake: mistake, Reason: reason})
	}
	return problems
}

func invalid(path string, err error) *problem.Error {
	return &problem.Error{Mistake: finding.Mistake{Path: path, Cause: err.Error()}, Reason: v0.ReasonInvalidTemplate}
}

// legacyFields converts Akri's legacy fields into broker resources.
func legacyFields(configuration *v0.Configuration) (convert.Lists, error) {
	var fields convert.Fields
	var broker v0.BrokerSpec
	if configuration.Spec.BrokerSpec != nil {
		broker = *configuration.Spec.BrokerSpec
	}
	for _, field := range []struct {
		path convert.Path
		from *runtime.RawExtension
		to   *map[string]any
	}{
		{convert.BrokerPodSpec, broker.BrokerPodSpec, &fields.BrokerPodSpec},
		{convert.BrokerJobSpec, broker.BrokerJobSpec, &fields.BrokerJobSpec},
		{convert.InstanceServiceSpec, configuration.Spec.InstanceServiceSpec, &fields.InstanceServiceSpec},
		{convert.ConfigurationServiceSpec, configuration.Spec.ConfigurationServiceSpec, &fields.ConfigurationServiceSpec},
	} {
		if field.from == nil || len(field.from.Raw) == 0 {
			continue
		}
		if err := utiljson.Unmarshal(field.from.Raw, field.to); err != nil { // whole numbers become int64
			return convert.Lists{}, &convert.FieldError{Field: field.path, Err: err}
		}
	}
	return convert.BrokerResources(fields)
}
