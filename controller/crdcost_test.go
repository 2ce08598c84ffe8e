package controller

import (
	"fmt"
	"runtime"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/internal/apitest"
	"akri.sh/akri/internal/fulltest"
)

// A CustomResourceDefinition that no template uses costs nothing that grows with the
// size of the Configurations.
func TestUnusedDefinitionsAreCheap(t *testing.T) {
	fulltest.Only(t)
	config := apitest.Start(t)
	scheme := apiruntime.NewScheme()
	if err := v0.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	namespace := apitest.Namespace(t, config)
	const count, fields, events = 5, 2000, 20
	data := map[string]any{}
	for i := range fields {
		data[fmt.Sprint("field-", i)] = "x"
	}
	for i := range count {
		template := map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"},
			"data": data,
		}
		if err := api.Create(t.Context(), &v0.Configuration{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("cfg-", i)},
			Spec: v0.ConfigurationSpec{
				DiscoveryHandler:        v0.DiscoveryHandler{Name: "debugEcho"},
				InstanceBrokerResources: []v0.BrokerResource{{Object: template}},
			},
		}); err != nil {
			t.Fatal(err)
		}
	}
	options := CacheOptions()
	options.Scheme = scheme
	options.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	all, err := cache.New(config, options)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = all.Start(t.Context()) }()
	if !all.WaitForCacheSync(t.Context()) {
		t.Fatal("the cache does not start")
	}
	indexed := func(object client.Object) []string { return []string{object.(*v0.Instance).Spec.ConfigurationName} }
	if err := all.IndexField(t.Context(), &v0.Instance{}, byConfiguration, indexed); err != nil {
		t.Fatal(err)
	}
	compiled := templates.NewCache(confine.Policy{})
	for range 2 { // the first one compiles the templates
		if parents := parentsUsing(t.Context(), all, compiled, ""); len(parents) != count {
			t.Fatalf("%d parents use the core group, want %d", len(parents), count)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range events {
		if parents := parentsUsing(t.Context(), all, compiled, "unused.example.com"); len(parents) != 0 {
			t.Errorf("%d parents use a group that no template names", len(parents))
		}
	}
	runtime.ReadMemStats(&after)
	if bytes := after.TotalAlloc - before.TotalAlloc; bytes > 10*events*count*fields {
		t.Errorf("%d bytes for %d events of unused definitions: the Configurations are copied", bytes, events)
	}
}
