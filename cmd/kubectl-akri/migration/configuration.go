package migration

import (
	"cmp"
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v0 "akri.sh/akri/api/v0"
)

// configuration is what matters of a stored Configuration.
type configuration struct {
	*unstructured.Unstructured
	Namespace, Name string
	handler         string
	details         string
	capacity        int64
	account         string // the ServiceAccount of the brokers
	pod, job        bool
	sources         []propertySource
	// decoded is nil if the object does not fit the type; failure says why.
	decoded *v0.Configuration
	failure error
}

// propertySource is a Secret or a ConfigMap that a discovery property is taken from.
type propertySource struct {
	property, kind, namespace, name, key string
	optional                             bool
}

// inOwn returns the object that is read after the move: without a namespace, that of
// the Configuration.
func (s propertySource) inOwn(namespace string) Reference {
	return Reference{s.kind, cmp.Or(s.namespace, namespace), s.name}
}

// parse reads a Configuration without trusting its types.
func parse(object *unstructured.Unstructured) configuration {
	c := configuration{Unstructured: object, Namespace: object.GetNamespace(), Name: object.GetName(), capacity: 1}
	spec, _, _ := unstructured.NestedMap(object.Object, "spec")
	handler, _ := spec["discoveryHandler"].(map[string]any)
	c.handler, _ = handler["name"].(string)
	c.details, _ = handler["discoveryDetails"].(string)
	if capacity, ok := spec["capacity"].(int64); ok {
		c.capacity = capacity
	}
	broker, _ := spec["brokerSpec"].(map[string]any)
	pod, _ := broker["brokerPodSpec"].(map[string]any)
	job, _ := broker["brokerJobSpec"].(map[string]any)
	c.pod, c.job = pod != nil, job != nil
	if pod == nil {
		pod, _, _ = unstructured.NestedMap(job, "template", "spec")
	}
	c.account, _ = pod["serviceAccountName"].(string)
	if c.account == "default" {
		c.account = "" // every namespace has it
	}
	properties, _ := handler["discoveryProperties"].([]any)
	for _, element := range properties {
		property, _ := element.(map[string]any)
		c.sources = append(c.sources, sourcesOf(property)...)
	}
	c.decode()
	return c
}

func sourcesOf(property map[string]any) []propertySource {
	var found []propertySource
	from, _ := property["valueFrom"].(map[string]any)
	for field, kind := range map[string]string{"secretKeyRef": "Secret", "configMapKeyRef": "ConfigMap"} {
		reference, _ := from[field].(map[string]any)
		if reference == nil {
			continue // both are rejected by the schema
		}
		s := propertySource{kind: kind}
		s.property, _ = property["name"].(string)
		s.namespace, _ = reference["namespace"].(string)
		s.name, _ = reference["name"].(string)
		s.key, _ = reference["key"].(string)
		s.optional, _ = reference["optional"].(bool)
		found = append(found, s)
	}
	return found
}

func (c *configuration) decode() {
	data, err := json.Marshal(c.Object)
	if err == nil {
		decoded := &v0.Configuration{}
		if err = json.Unmarshal(data, decoded); err == nil {
			c.decoded = decoded
			return
		}
	}
	c.failure = err
}

func (c *configuration) place() string { return "Configuration " + c.Namespace + "/" + c.Name }

// oldFields returns the fields of Akri 0.6 and older in the spec, which no schema has had
// since.
func (c *configuration) oldFields() []string {
	var found []string
	spec, _, _ := unstructured.NestedMap(c.Object, "spec")
	for _, field := range []string{"protocol", "brokerPodSpec", "properties", "units"} {
		if _, exists := spec[field]; exists {
			found = append(found, "spec."+field)
		}
	}
	return found
}

func compareReferences(a, b Reference) int {
	return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}
