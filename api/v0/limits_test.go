package v0_test

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/config/crd"
	"akri.sh/akri/internal/apitest"
)

// properties returns count properties whose names and values have size characters each.
func properties(count, size int) map[string]any {
	all := map[string]any{}
	for i := range count {
		name := fmt.Sprintf("P%03d", i)
		all[name] = strings.Repeat("x", size-len(name))
	}
	return all
}

func repeat(count int, element func(i int) any) []any {
	list := make([]any, count)
	for i := range list {
		list[i] = element(i)
	}
	return list
}

// TestLimits checks what the API server accepts at each limit, and that it refuses one
// more. Its CEL rules stay within their cost.
func TestLimits(t *testing.T) {
	api := newAPI(t)
	entry := func(i int) any {
		return map[string]any{"version": "v1", "kind": "Pod", "name": fmt.Sprint("p", i), "template": int64(0)}
	}
	for name, tc := range map[string]struct {
		kind, field   string
		at, over, all any // all: what else to say; nil if at and over suffice
		says          string
	}{
		"brokerProperties, number": {"Configuration", "spec.brokerProperties",
			properties(v0.MaxProperties, 10), properties(v0.MaxProperties+1, 10), nil, "at most 500"},
		"brokerProperties, sum": {"Configuration", "spec.brokerProperties",
			properties(32, v0.MaxPropertiesLength/32), properties(32, v0.MaxPropertiesLength/32+1), nil, "at most 16384"},
		"brokerProperties, one": {"Configuration", "spec.brokerProperties",
			map[string]any{"P": strings.Repeat("x", v0.MaxPropertyLength)}, map[string]any{"P": strings.Repeat("x", v0.MaxPropertyLength+1)}, nil,
			"its value at most 8192"},
		"brokerProperties, name": {"Configuration", "spec.brokerProperties",
			map[string]any{strings.Repeat("N", v0.MaxPropertyNameLength): ""}, map[string]any{strings.Repeat("N", v0.MaxPropertyNameLength+1): ""},
			nil, "at most 253"},
		"sampleProperties, sum": {"Configuration", "spec.sampleProperties",
			properties(32, v0.MaxPropertiesLength/32), properties(32, v0.MaxPropertiesLength/32+1), nil, "at most 16384"},
		"an Instance's properties, number": {"Instance", "spec.brokerProperties",
			properties(2*v0.MaxProperties, 10), properties(2*v0.MaxProperties+1, 10), nil, "at most 1000"},
		"an Instance's properties, sum": {"Instance", "spec.brokerProperties",
			properties(64, 2*v0.MaxPropertiesLength/64), properties(64, 2*v0.MaxPropertiesLength/64+1), nil, "at most 32768"},
		"discoveryProperties": {"Configuration", "spec.discoveryHandler.discoveryProperties",
			repeat(v0.MaxDiscoveryProperties, func(i int) any { return map[string]any{"name": fmt.Sprint("P", i), "value": "v"} }),
			repeat(v0.MaxDiscoveryProperties+1, func(i int) any { return map[string]any{"name": fmt.Sprint("P", i), "value": "v"} }), nil,
			"at most 128"},
		"a discoveryProperty": {"Configuration", "spec.discoveryHandler.discoveryProperties",
			[]any{map[string]any{"name": "P", "value": strings.Repeat("x", v0.MaxDiscoveryPropertyLength)}},
			[]any{map[string]any{"name": "P", "value": strings.Repeat("x", v0.MaxDiscoveryPropertyLength+1)}}, nil, "8192"},
		"discoveryProperties, bytes": {"Configuration", "spec.discoveryHandler.discoveryProperties",
			values(v0.MaxDiscoveryPropertiesLength/16, 0), values(v0.MaxDiscoveryPropertiesLength/16, 1), nil, "at most 65536 bytes"},
		"nodes": {"Instance", "spec.nodes",
			repeat(v0.MaxNodes, func(i int) any { return fmt.Sprint("n", i) }), repeat(v0.MaxNodes+1, func(i int) any { return fmt.Sprint("n", i) }),
			nil, "at most 5000"},
		"capacity": {"Instance", "spec.capacity", int64(v0.MaxSlots), int64(v0.MaxSlots + 1), nil, "less than or equal to 1000"},
		"an Instance's objects": {"Instance", "status.resources",
			repeat(v0.MaxResources, entry), repeat(v0.MaxResources+1, entry), nil, "at most 2000"},
		"a Configuration's objects": {"Configuration", "status.resources",
			repeat(v0.MaxResources, entry), repeat(v0.MaxResources+1, entry), nil, "at most 2000"},
		"discoveryFailures": {"Configuration", "status.discoveryFailures",
			repeat(v0.MaxDiscoveryFailures, failure), repeat(v0.MaxDiscoveryFailures+1, failure), nil, "at most 50"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := api.set(tc.kind, tc.field, tc.at); err != nil {
				t.Errorf("at the limit: %v", err)
			}
			if err := api.set(tc.kind, tc.field, tc.over); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("above the limit: got %.300v, want %q in it", err, tc.says)
			}
		})
	}
}

// values returns discoveryProperties: 16 with a number of bytes each, in characters of two,
// and one with further bytes.
func values(length, more int) []any {
	list := repeat(16, func(i int) any {
		return map[string]any{"name": fmt.Sprint("P", i), "value": strings.Repeat("ä", length/2)}
	})
	return append(list, map[string]any{"name": "LAST", "value": strings.Repeat("x", more)})
}

func failure(i int) any {
	return map[string]any{"node": fmt.Sprint("n", i), "handler": "h", "message": "m"}
}

// objects writes one Configuration and one Instance.
type objects struct {
	*apitest.World
	client dynamic.Interface
	group  string
}

func newAPI(t *testing.T) *objects {
	w := apitest.NewWorld(t)
	client, err := dynamic.NewForConfig(w.Config)
	if err != nil {
		t.Fatal(err)
	}
	api := &objects{World: w, client: client, group: v0.Domain}
	for kind, text := range smallest {
		if err := api.store(kind, decode(t, text)); err != nil {
			t.Fatal(err)
		}
	}
	return api
}

var smallest = map[string]string{
	"Configuration": "{kind: Configuration, metadata: {name: c}, spec: {discoveryHandler: {name: h}}}",
	"Instance":      "{kind: Instance, metadata: {name: c-1}, spec: {configurationName: c, cdiName: akri.sh/c=1, capacity: 1}}",
}

func (o *objects) of(kind string) dynamic.ResourceInterface {
	return o.client.Resource(schema.GroupVersionResource{Group: o.group, Version: "v0", Resource: strings.ToLower(kind) + "s"}).
		Namespace(o.Namespace)
}

func (o *objects) store(kind string, object *unstructured.Unstructured) error {
	object.SetAPIVersion(o.group + "/v0")
	_, err := o.of(kind).Create(o.T.Context(), object, metav1.CreateOptions{})
	return err
}

// set sets a field in a dry run.
func (o *objects) set(kind, field string, value any) error {
	return o.change(kind, field, value, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
}

func (o *objects) change(kind, field string, value any, options metav1.PatchOptions) error {
	o.T.Helper()
	name := map[string]string{"Configuration": "c", "Instance": "c-1"}[kind]
	patch := &unstructured.Unstructured{Object: map[string]any{}}
	path := strings.Split(field, ".")
	if err := unstructured.SetNestedField(patch.Object, value, path...); err != nil {
		o.T.Fatal(err)
	}
	text, err := yaml.Marshal(patch.Object)
	if err != nil {
		o.T.Fatal(err)
	}
	if text, err = yaml.YAMLToJSON(text); err != nil {
		o.T.Fatal(err)
	}
	var subresources []string
	if path[0] == "status" {
		subresources = []string{"status"}
	}
	_, err = o.of(kind).Patch(o.T.Context(), name, types.MergePatchType, text, options, subresources...)
	return err
}

// TestStoredObjectsRemainWritable checks that objects that were stored before the
// schema had its limits can be changed, as long as the change itself is within them.
func TestStoredObjectsRemainWritable(t *testing.T) {
	api := newAPI(t)
	api.group = api.Namespace + ".example.com"
	before := func(text string) string { // without limits
		var lines []string
		for line := range strings.SplitSeq(text, "\n") {
			key, _, _ := strings.Cut(strings.TrimSpace(line), ":")
			switch key {
			case "maxLength", "maxItems", "maxProperties", "maximum", "pattern":
			default:
				lines = append(lines, line)
			}
		}
		return strings.Join(lines, "\n")
	}
	api.define(func(text string) map[string]any {
		definition := decode(t, before(text)).Object
		removeRules(definition)
		return definition
	})
	long := properties(600, 100)
	for kind, fields := range map[string]map[string]any{
		"Configuration": {
			"brokerProperties": long, "discoveryHandler": map[string]any{
				"name": "h", "discoveryProperties": repeat(200, func(i int) any { return map[string]any{"name": fmt.Sprint("P", i), "value": "v"} }),
			},
			"instanceBrokerResources": []any{map[string]any{"apiVersion": "/v1", "kind": "Pod ", "metadata": map[string]any{"name": "p"}}},
		},
		"Instance": {"brokerProperties": properties(1200, 100), "capacity": int64(2000)},
	} {
		object := decode(t, smallest[kind])
		object.SetName("odd." + strings.Repeat("n", 80))
		spec := object.Object["spec"].(map[string]any)
		maps.Copy(spec, fields)
		if err := api.store(kind, object); err != nil {
			t.Fatal(err)
		}
	}
	api.define(func(text string) map[string]any { return decode(t, text).Object })
	odd := "odd." + strings.Repeat("n", 80)
	patch := func(kind, patch string, subresources ...string) error {
		_, err := api.of(kind).Patch(t.Context(), odd, types.MergePatchType, []byte(patch),
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, subresources...)
		return err
	}
	for kind, change := range map[string]string{
		"Configuration": `{"spec":{"brokerProperties":{"NEW":"x"}}}`, "Instance": `{"spec":{"capacity":3000}}`,
	} {
		api.Eventually("the schema has limits", func() string {
			if patch(kind, change) == nil {
				return kind + " has none"
			}
			return ""
		})
	}
	for kind, changes := range map[string][]string{
		"Configuration": {
			`{"metadata":{"labels":{"a":"b"}}}`, `{"metadata":{"finalizers":["akri.sh/cleanup"]}}`, `{"spec":{"capacity":2}}`,
			`{"spec":{"discoveryHandler":{"discoveryDetails":"x"}}}`, `{"spec":{"brokerProperties":null}}`,
		},
		"Instance": {
			`{"metadata":{"labels":{"a":"b"}}}`, `{"spec":{"nodes":["a"]}}`, `{"spec":{"deviceUsage":{"x-0":"a"}}}`, `{"spec":{"capacity":1}}`,
		},
	} {
		for _, change := range changes {
			if err := patch(kind, change); err != nil {
				t.Errorf("a stored %s: %s is refused: %.500v", kind, change, err)
			}
		}
		if err := patch(kind, `{"status":{"resources":[{"version":"v1","kind":"Pod","name":"x","template":0}]}}`, "status"); err != nil {
			t.Errorf("a stored %s: its status is refused: %.500v", kind, err)
		}
		api.deleteFinalized(kind, odd)
	}
}

// deleteFinalized deletes an object that has a finalizer, which is an update.
func (o *objects) deleteFinalized(kind, name string) {
	o.T.Helper()
	patch := func(text string) {
		if _, err := o.of(kind).Patch(o.T.Context(), name, types.MergePatchType, []byte(text), metav1.PatchOptions{}); err != nil {
			o.T.Errorf("%s %s: %s is refused: %.500v", kind, name, text, err)
		}
	}
	patch(`{"metadata":{"finalizers":["akri.sh/cleanup"]}}`)
	if err := o.of(kind).Delete(o.T.Context(), name, metav1.DeleteOptions{}); err != nil {
		o.T.Errorf("%s %s: %v", kind, name, err)
	}
	patch(`{"metadata":{"finalizers":null}}`)
	if _, err := o.of(kind).Get(o.T.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		o.T.Errorf("%s %s is not deleted: %v", kind, name, err)
	}
}

// define creates or replaces the definitions of the kinds in the group of o.
func (o *objects) define(change func(text string) map[string]any) {
	o.T.Helper()
	definitions := o.client.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	for kind, data := range map[string][]byte{"Configuration": crd.Configurations, "Instance": crd.Instances} {
		text := bytes.ReplaceAll(data, []byte("group: "+v0.Domain), []byte("group: "+o.group))
		text = bytes.ReplaceAll(text, []byte("s."+v0.Domain+"\n"), []byte("s."+o.group+"\n"))
		definition := &unstructured.Unstructured{Object: change(string(text))}
		_, err := definitions.Apply(o.T.Context(), definition.GetName(), definition, metav1.ApplyOptions{FieldManager: "test"})
		if err != nil {
			o.T.Fatalf("%s: %v", kind, err)
		}
		o.Eventually("the kind is served", func() string {
			_, err := o.of(kind).List(o.T.Context(), metav1.ListOptions{})
			if err != nil {
				return err.Error()
			}
			return ""
		})
	}
}

// removeRules removes the CEL rules of a schema.
func removeRules(value any) {
	switch v := value.(type) {
	case map[string]any:
		delete(v, "x-kubernetes-validations")
		for _, child := range v {
			removeRules(child)
		}
	case []any:
		for _, child := range v {
			removeRules(child)
		}
	}
}
