package schema

import (
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gvk "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"akri.sh/akri/internal/apitest"
	"akri.sh/akri/templating/source"
)

func TestMain(m *testing.M) { os.Exit(apitest.Run(m)) }

// TestAgreesWithTheAPIServer checks that this package accepts and rejects the same
// Configurations as an API server with strict validation. The code is the same; what can
// differ is the order of its steps and what they are given.
func TestAgreesWithTheAPIServer(t *testing.T) {
	config := apitest.Start(t)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	resource := gvk.GroupVersionResource{Group: "akri.sh", Version: "v0", Resource: "configurations"}
	configurations := client.Resource(resource).Namespace(apitest.Namespace(t, config))
	compare := func(text string) {
		documents, err := source.Parse("configuration.yaml", []byte(text))
		if err != nil || len(documents) != 1 {
			t.Fatalf("%s: %v", text, err)
		}
		object := &unstructured.Unstructured{Object: documents[0].Object()}
		findings, _ := Check(object.Object, nil)
		_, refused := configurations.Create(t.Context(), object,
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
		if (len(findings) > 0) != (refused != nil) {
			t.Errorf("%s\n  here:       %v\n  API server: %v", text, findings, refused)
		}
	}
	values := []string{"1", "0", "-1", "1001", "1.5", "true", "text", "''", "[]", "[a]", "[{}]", "[1]", "[null]", "{}", "{a: b}", "{a: 1}",
		"{a: null}", "null", "{name: x}", "[{name: x}]", "[{name: 1x}]", "[{name: x}, {name: x}]", "{'a.b': c, '[0]': 1}",
		"{maxUnavailable: 1}", "{maxUnavailable: 0}", "{maxUnavailable: text}", "{maxUnavailable: 10%}", "{maxUnavailable: 1.5}",
		"{maxUnavailable: true}", "{maxUnavailable: []}", "{maxUnavailable: null}",
		"[{apiVersion: v1, kind: A, metadata: {name: b}}]", "[{apiVersion: 'v{1}', kind: A, metadata: {name: b}}]",
		"[{apiVersion: v1, kind: '', metadata: {name: b}}]", "[{apiVersion: v1, kind: A, metadata: {name: b, generateName: c}}]",
		"[{apiVersion: v1, kind: A, metadata: {}}]", "[{apiVersion: v1, metadata: {name: b}}]",
		"[{apiVersion: v1, kind: A, metadata: {name: b}, status: {}}]",
		"[{apiVersion: v1, kind: A, metadata: {name: b, namespace: '{{x}}'}}]",
		"{name: b, discoveryProperties: [{name: x, value: 1}]}", "{name: b, discoveryProperties: [{name: x, value: null}]}",
		"{name: b, discoveryProperties: [{name: x, valueFrom: {}}]}",
		"{name: b, discoveryProperties: [{name: x, valueFrom: {secretKeyRef: {name: s}}}]}",
		"{name: b, discoveryProperties: [{name: x, valueFrom: {secretKeyRef: {name: s, key: k, optional: 'yes'}}}]}",
		"{brokerPodSpec: 1}", "{brokerPodSpec: {anything: [goes]}}", "{brokerPodSpec: {}, brokerJobSpec: {}}",
		"{brokerPodSpec: {}, brokerJobSpec: null}"}
	const base = "{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: a}, spec: {discoveryHandler: {name: b}"
	for _, field := range append(names(kinds()[0].schema.Properties["spec"].Properties), "unknown") {
		for _, value := range values {
			if field == "discoveryHandler" {
				compare(strings.Replace(base, "{name: b}", value, 1) + "}}")
			} else {
				compare(base + ", " + field + ": " + value + "}}")
			}
		}
	}
	for _, metadata := range []string{"{name: A}", "{name: a.b}", "{name: ''}", "{name: 1}", "{}", "[]", "text", "null",
		"{name: a, labels: {a: b c}}", "{name: a, labels: {-: c}}", "{name: a, labels: {a: 1}}", "{name: a, labels: null}",
		"{name: a, annotations: {a: null}}", "{name: a, annotations: {'a b': c}}", "{name: a, finalizers: [a]}", "{name: a, finalizers: ['a b']}",
		"{name: a, ownerReferences: [{apiVersion: v1, kind: Node, name: n}]}", "{name: a, ownerReferences: [{x: y}]}",
		"{name: a, creationTimestamp: x}", "{name: a, creationTimestamp: null}", "{name: a, generation: x}", "{name: a, lables: {}}",
	} {
		compare(strings.Replace(base, "{name: a}", metadata, 1) + "}}")
	}
}
