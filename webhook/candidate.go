package webhook

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/internal/finding"
	"akri.sh/akri/templating"
)

// candidate is a template under review, with what is known before it is rendered.
type candidate struct {
	level templating.Level
	index int
	// place is the path of the template, starting with spec.
	place string
	// source is the object that the author wrote. It is nil for a template that
	// was converted from one of Akri's legacy fields.
	source map[string]any

	kind       schema.GroupVersionKind
	directives templating.Directives
	// resource is nil if the API server does not serve the kind, or if it could
	// not be looked up because of err.
	resource *meta.RESTMapping
	err      error
	// namespace of the objects, "" for cluster-scoped kinds.
	namespace string
	// name of the objects, "" if it is an expression.
	name string
}

// legacyKinds are the kinds that Akri's legacy fields are converted into.
var legacyKinds = map[string]schema.GroupVersionKind{
	"brokerSpec.brokerPodSpec": {Version: "v1", Kind: "Pod"},
	"brokerSpec.brokerJobSpec": {Group: "batch", Version: "v1", Kind: "Job"},
	"instanceServiceSpec":      {Version: "v1", Kind: "Service"},
	"configurationServiceSpec": {Version: "v1", Kind: "Service"},
}

// newCandidates returns a candidate for each template.
func newCandidates(configuration *v0.Configuration, compiled *templates.Templates, mapper plan.Mapper) []*candidate {
	var candidates []*candidate
	for _, list := range []struct {
		level     templating.Level
		set       *templating.Set
		resources []v0.BrokerResource
	}{
		{templating.InstanceLevel, compiled.Instance, configuration.Spec.InstanceBrokerResources},
		{templating.ConfigurationLevel, compiled.Group, configuration.Spec.ConfigurationBrokerResources},
	} {
		for index := range list.set.Len() {
			c := &candidate{
				level: list.level, index: index, place: compiled.Place(templating.Origin{Level: list.level, Index: index}),
				kind: legacyKinds[compiled.Name(list.level, index)], directives: list.set.Directives(index),
			}
			if index < len(list.resources) {
				c.read(list.resources[index].Object)
			}
			c.resolve(mapper, configuration.Namespace)
			candidates = append(candidates, c)
		}
	}
	return candidates
}

// resolve looks up the resource of the kind, and completes the namespace. home is the
// namespace of the Configuration.
func (c *candidate) resolve(mapper plan.Mapper, home string) {
	c.resource, c.err = mapper.RESTMapping(c.kind.GroupKind(), c.kind.Version)
	if meta.IsNoMatchError(c.err) {
		c.resource, c.err = nil, nil
	}
	switch {
	case !c.namespaced():
		c.namespace = ""
	case c.namespace == "":
		c.namespace = home
	}
}

// read reads the fields of a template that cannot be expressions.
func (c *candidate) read(source map[string]any) {
	apiVersion, _ := source["apiVersion"].(string)
	kind, _ := source["kind"].(string)
	metadata, _ := source["metadata"].(map[string]any)
	c.source = source
	c.kind = schema.FromAPIVersionAndKind(apiVersion, kind)
	c.namespace, _ = metadata["namespace"].(string)
	if name, _ := metadata["name"].(string); !strings.Contains(name, "{{") {
		c.name = name
	}
}

// namedByDevice reports whether the names of the objects may depend on properties of
// devices. Those of an existing device are not shown.
func (c *candidate) namedByDevice() bool {
	metadata, _ := c.source["metadata"].(map[string]any)
	return templating.ReadsDevice(metadata["name"])
}

// field returns the place of a field, given its path in the object.
func (c *candidate) field(path string) string {
	if path == "" {
		return c.place
	}
	if c.source == nil { // a legacy field holds only the spec
		rest, found := strings.CutPrefix(path, "spec.")
		if !found {
			return c.place
		}
		path = rest
	}
	return c.place + "." + path
}

// namespaced reports whether the kind is namespaced. An unknown kind counts as
// namespaced.
func (c *candidate) namespaced() bool {
	return c.resource == nil || c.resource.Scope.Name() == meta.RESTScopeNameNamespace
}

// ownGroups are Kubernetes' own, in which nobody installs kinds later.
var ownGroups = []string{"", "apps", "batch", "autoscaling", "policy", "extensions"}

// unmapped returns a finding if the resource of the kind is not known.
func (c *candidate) unmapped() []Finding {
	switch {
	case c.err != nil:
		return inconclusive(c.place,
			fmt.Sprintf("could not check whether the API server has kind %q in %q: %v", c.kind.Kind, c.kind.GroupVersion(), c.err))
	case c.resource == nil && slices.Contains(ownGroups, c.kind.Group):
		unknown := plan.KindUnavailableError(c.kind, nil).Mistake
		return []Finding{{Deny, finding.Mistake{Path: c.field("kind"), Cause: unknown.Cause, Hint: "correct apiVersion and kind"}}}
	case c.resource == nil:
		return []Finding{{Inconclusive, problem.At(c.field("kind"), plan.KindUnavailableError(c.kind, nil)).Mistake}}
	}
	return nil
}

// candidateOf returns the template at an index of a list.
func candidateOf(candidates []*candidate, level templating.Level, index int) *candidate {
	for _, c := range candidates {
		if c.level == level && c.index == index {
			return c
		}
	}
	return &candidate{level: level, index: index, place: "spec"}
}

// expression returns the inside of a text that is exactly one expression.
func expression(text string) (string, bool) {
	match := wholeExpression.FindStringSubmatch(text)
	if match == nil || strings.Contains(match[1], "{{") || strings.Contains(match[1], "}}") {
		return "", false
	}
	return match[1], true
}

var wholeExpression = regexp.MustCompile(`^\s*\{\{-?\s*(.*?)\s*-?\}\}\s*$`)

// hasExpression reports whether a text or key in a template has an expression.
func hasExpression(value any) bool {
	return templating.AnyText(value, func(text string) bool { return strings.Contains(text, "{{") })
}
