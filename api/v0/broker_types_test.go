package v0

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
)

const template = `{"apiVersion":"v1","kind":"Service",` +
	`"metadata":{"labels":"{{LABEL_SELECTOR}}","name":"{{INSTANCE_NAME}}-svc"},"spec":{"ports":[{"port":6052}],"ratio":0.5}}`

// TestBrokerResourceKeepsUnknownFields checks that a template keeps the fields that
// the schema does not know.
func TestBrokerResourceKeepsUnknownFields(t *testing.T) {
	var resource BrokerResource
	if err := json.Unmarshal([]byte(template), &resource); err != nil {
		t.Fatal(err)
	}
	if resource.Kind != "Service" || resource.Metadata.Name != "{{INSTANCE_NAME}}-svc" {
		t.Errorf("known fields: %+v", resource)
	}
	port := resource.Object["spec"].(map[string]any)["ports"].([]any)[0].(map[string]any)["port"]
	if port != int64(6052) {
		t.Errorf("port is %T %v; integers must be int64, as in unstructured objects", port, port)
	}
	written, err := json.Marshal(resource)
	if err != nil || string(written) != template {
		t.Errorf("marshalled (%v): %s", err, written)
	}
	copied := resource.DeepCopy()
	copied.Object["kind"] = "Changed"
	if resource.Object["kind"] != "Service" {
		t.Error("a deep copy shares Object with its original")
	}
}

// TestConfigurationFromUnstructured checks the conversion from unstructured objects,
// which the agent and the controller use.
func TestConfigurationFromUnstructured(t *testing.T) {
	content := map[string]any{
		"spec": map[string]any{
			"discoveryHandler": map[string]any{"name": "debugEcho"},
			"instanceBrokerResources": []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "n"},
				"data": map[string]any{"k": "v"}}},
		},
	}
	var configuration Configuration
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &configuration); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"k": "v"}
	if diff := cmp.Diff(want, configuration.Spec.InstanceBrokerResources[0].Object["data"]); diff != "" {
		t.Errorf("data: -want +got\n%s", diff)
	}
}
