package controller

import (
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/templating"
	"akri.sh/akri/templating/convert"
)

// templates are the compiled broker resources of one generation of a
// Configuration. If problems is not empty, the sets must not be used.
type templates struct {
	uid        types.UID
	generation int64
	instance   *templating.Set
	group      *templating.Set
	problems   []problem
	// names say where each template was written.
	names map[templating.Level][]string
}

// kinds are all kinds that the templates name.
func (t *templates) kinds() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	if t.instance != nil {
		kinds = append(kinds, t.instance.Kinds()...)
	}
	if t.group != nil {
		kinds = append(kinds, t.group.Kinds()...)
	}
	return kinds
}

// templateCache compiles each generation of a Configuration once. It holds one
// entry for each Configuration that exists.
type templateCache struct {
	mutex   sync.Mutex
	entries map[types.NamespacedName]*templates
}

func newTemplateCache() *templateCache {
	return &templateCache{entries: map[types.NamespacedName]*templates{}}
}

func (c *templateCache) get(configuration *v0.Configuration) *templates {
	name := types.NamespacedName{Namespace: configuration.Namespace, Name: configuration.Name}
	c.mutex.Lock()
	entry := c.entries[name]
	c.mutex.Unlock()
	if entry != nil && entry.uid == configuration.UID && entry.generation == configuration.Generation {
		return entry
	}
	entry = compile(configuration) // without the lock: two workers at worst do it twice
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.entries[name] = entry
	return entry
}

func (c *templateCache) forget(name types.NamespacedName) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	delete(c.entries, name)
}

func compile(configuration *v0.Configuration) *templates {
	compiled := &templates{uid: configuration.UID, generation: configuration.Generation, names: map[templating.Level][]string{}}
	converted, err := oldFields(configuration)
	if err != nil {
		compiled.problems = append(compiled.problems, problem{reason: v0.ReasonInvalidTemplate, message: "spec." + err.Error()})
		return compiled
	}
	compiled.instance = compiled.compile(templating.InstanceLevel, configuration.Spec.InstanceBrokerResources, converted.Instance)
	compiled.group = compiled.compile(templating.ConfigurationLevel, configuration.Spec.ConfigurationBrokerResources, converted.Configuration)
	return compiled
}

// compile compiles one list: the broker resources, and behind them what the old
// fields were converted into.
func (t *templates) compile(level templating.Level, written []v0.BrokerResource, converted []convert.Resource) *templating.Set {
	list := make([]map[string]any, 0, len(written)+len(converted))
	for i := range written {
		list = append(list, written[i].Object)
		t.names[level] = append(t.names[level], fmt.Sprintf("%s[%d]", level, i))
	}
	list = append(list, convert.Templates(converted)...)
	for _, resource := range converted {
		t.names[level] = append(t.names[level], resource.From)
	}
	for i, template := range list {
		apiVersion, _ := template["apiVersion"].(string)
		kind, _ := template["kind"].(string)
		if err := confine.Kind(schema.FromAPIVersionAndKind(apiVersion, kind)); err != nil {
			t.problems = append(t.problems, failed(t.name(level, i)+".kind", err))
		}
	}
	set, diagnostics := templating.Compile(level, list)
	t.problems = append(t.problems, t.diagnosed(level, v0.ReasonInvalidTemplate, diagnostics)...)
	return set
}

// name is what a template is called where its author wrote it.
func (t *templates) name(level templating.Level, index int) string {
	if names := t.names[level]; index < len(names) {
		return names[index]
	}
	return fmt.Sprintf("%s[%d]", level, index)
}

// place is an origin, or a diagnostic's list, under the name that the author
// knows.
func (t *templates) place(level templating.Level, origin string) string {
	for index, name := range t.names[level] {
		if rest, found := strings.CutPrefix(origin, fmt.Sprintf("%s[%d]", level, index)); found {
			return name + rest
		}
	}
	return origin
}

// diagnosed makes problems of what the templating package says.
func (t *templates) diagnosed(level templating.Level, reason string, diagnostics templating.Diagnostics) []problem {
	var problems []problem
	for _, diagnostic := range diagnostics {
		diagnostic.List = t.place(level, diagnostic.List)
		problems = append(problems, problem{reason: reason, message: diagnostic.Error()})
	}
	return problems
}

// oldFields are the fields by which Akri describes a broker, as broker resources.
func oldFields(configuration *v0.Configuration) (convert.Lists, error) {
	fields := convert.Fields{Generation: configuration.Generation}
	var broker v0.BrokerSpec
	if configuration.Spec.BrokerSpec != nil {
		broker = *configuration.Spec.BrokerSpec
	}
	for _, field := range []struct {
		name string
		from *runtime.RawExtension
		to   *map[string]any
	}{
		{"brokerSpec.brokerPodSpec", broker.BrokerPodSpec, &fields.BrokerPodSpec},
		{"brokerSpec.brokerJobSpec", broker.BrokerJobSpec, &fields.BrokerJobSpec},
		{"instanceServiceSpec", configuration.Spec.InstanceServiceSpec, &fields.InstanceServiceSpec},
		{"configurationServiceSpec", configuration.Spec.ConfigurationServiceSpec, &fields.ConfigurationServiceSpec},
	} {
		if field.from == nil || len(field.from.Raw) == 0 {
			continue
		}
		if err := json.Unmarshal(field.from.Raw, field.to); err != nil { // whole numbers become int64
			return convert.Lists{}, fmt.Errorf("%s: %w", field.name, err)
		}
	}
	return convert.BrokerResources(fields)
}
