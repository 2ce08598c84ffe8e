package templates

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/confine"
)

// configurationOf returns a Configuration with a number of ConfigMap templates.
func configurationOf(name string, templates int, data func(i int) map[string]any) *v0.Configuration {
	configuration := &v0.Configuration{}
	configuration.Name, configuration.Namespace, configuration.UID, configuration.Generation = name, "ns", types.UID(name), 1
	for i := range templates {
		object := map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": fmt.Sprintf("{{INSTANCE_NAME}}-%d", i)},
			"data":     data(i),
		}
		configuration.Spec.InstanceBrokerResources = append(configuration.Spec.InstanceBrokerResources, v0.BrokerResource{Object: object})
	}
	return configuration
}

// entries returns data with a number of values.
func entries(n int, value string) func(int) map[string]any {
	return func(int) map[string]any {
		data := make(map[string]any, n)
		for k := range n {
			data[fmt.Sprintf("k%d", k)] = value
		}
		return data
	}
}

func small(name string) *v0.Configuration {
	return configurationOf(name, 1, entries(3, "{{CAPACITY}}"))
}

func TestEachGenerationIsCompiledOnce(t *testing.T) {
	cache := NewCache(confine.Policy{})
	configuration := small("a")
	first := cache.Get(configuration)
	if len(first.Problems) > 0 {
		t.Fatal(first.Problems)
	}
	if cache.Get(configuration) != first {
		t.Error("the same generation was compiled again")
	}
	configuration.Generation++
	second := cache.Get(configuration)
	if second == first {
		t.Error("a new generation was not compiled")
	}
	configuration.UID = "created again"
	if cache.Get(configuration) == second || len(cache.entries) != 1 {
		t.Errorf("a new Configuration of the same name was not compiled, or both are held: %d", len(cache.entries))
	}
	cache.Forget(types.NamespacedName{Namespace: "ns", Name: "a"})
	if len(cache.entries) != 0 || cache.bytes != 0 {
		t.Errorf("%d entries with %d bytes are held", len(cache.entries), cache.bytes)
	}
}

// However many large Configurations exist, what is held is bounded, and there is room for
// the latest.
func TestTheCacheIsBounded(t *testing.T) {
	cache := NewCache(confine.Policy{})
	large := func(i int) *v0.Configuration { return configurationOf(fmt.Sprint(i), 2, entries(200, "v")) }
	cache.max = 10 * estimate(large(0))
	for i := range 50 {
		if compiled := cache.Get(large(i)); cache.Get(large(i)) != compiled {
			t.Fatal("templates in use were dropped")
		}
	}
	if cache.bytes > cache.max || len(cache.entries) != 10 {
		t.Errorf("%d entries with %d bytes are held, at most %d bytes may be", len(cache.entries), cache.bytes, cache.max)
	}
	cache.Get(configurationOf("huge", 20, entries(400, "v")))
	if len(cache.entries) != 10 {
		t.Errorf("%d entries are held after one that is larger than all may be", len(cache.entries))
	}
}

// Passes share the Configuration with the informer's cache: neither compiling nor
// rendering changes it.
func TestTheConfigurationIsNotChanged(t *testing.T) {
	configuration := small("a")
	metadata := configuration.Spec.InstanceBrokerResources[0].Object["metadata"].(map[string]any)
	metadata["annotations"] = map[string]any{"akri.sh/deletion-policy": "orphan"}
	before := configuration.DeepCopy()
	compiled := NewCache(confine.Policy{}).Get(configuration)
	instance := &v0.Instance{}
	instance.Name, instance.Namespace = "a-1", "ns"
	objects, diagnostics := compiled.Instance.Render(InstanceValues(configuration, instance))
	if len(objects) != 1 || len(diagnostics) > 0 {
		t.Fatal(objects, diagnostics)
	}
	objects[0].Content["metadata"].(map[string]any)["labels"] = map[string]any{"changed": "by the caller"}
	objects[0].Content["data"].(map[string]any)["k1"] = "changed by the caller"
	if diff := cmp.Diff(before, configuration); diff != "" {
		t.Errorf("it was changed: -before +after\n%s", diff)
	}
}
