package controller

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/templating"
)

// templates are the compiled broker resources of one generation of a
// Configuration. If problems is not empty, the sets must not be used.
type templates struct {
	uid        types.UID
	generation int64
	instance   *templating.Set
	group      *templating.Set
	problems   []problem
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
	compiled := &templates{uid: configuration.UID, generation: configuration.Generation}
	var diagnostics templating.Diagnostics
	compiled.instance, diagnostics = templating.Compile(templating.InstanceLevel, contents(configuration.Spec.InstanceBrokerResources))
	compiled.problems = append(compiled.problems, diagnosed(v0.ReasonInvalidTemplate, diagnostics)...)
	compiled.group, diagnostics = templating.Compile(templating.ConfigurationLevel, contents(configuration.Spec.ConfigurationBrokerResources))
	compiled.problems = append(compiled.problems, diagnosed(v0.ReasonInvalidTemplate, diagnostics)...)
	compiled.problems = append(compiled.problems, refusedKinds(configuration)...)
	return compiled
}

func contents(resources []v0.BrokerResource) []map[string]any {
	templates := make([]map[string]any, len(resources))
	for i := range resources {
		templates[i] = resources[i].Object
	}
	return templates
}
