package v0_test

import (
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/apitest"
)

func TestMain(m *testing.M) { os.Exit(apitest.Run(m)) }

func decode(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return object
}

// TestConfigurationSchema checks the schema without a webhook. Each error names the
// field and, for the CEL rules, the remedy.
func TestConfigurationSchema(t *testing.T) {
	config := apitest.Start(t)
	namespace := apitest.Namespace(t, config)
	api, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	const handler = "discoveryHandler: {name: h}"
	spec := func(more string) string { return "{" + handler + ", " + more + "}" }
	instanceResource := func(template string) string { return spec("instanceBrokerResources: [" + template + "]") }
	cases := map[string]struct {
		name, spec string
		says       []string // parts of the error; empty: accepted
	}{
		"smallest":             {spec: "{" + handler + "}"},
		"no handler":           {spec: "{capacity: 1}", says: []string{"spec.discoveryHandler", "Required"}},
		"name too long":        {name: strings.Repeat("a", 57), spec: "{" + handler + "}", says: []string{"56 characters"}},
		"longest name":         {name: strings.Repeat("a", 56), spec: "{" + handler + "}"},
		"name with dots":       {name: "a.b", spec: "{" + handler + "}", says: []string{"56 characters", "'-'"}},
		"capacity 0":           {spec: spec("capacity: 0"), says: []string{"spec.capacity"}},
		"ServiceAccount":       {spec: spec("serviceAccountName: cameras.v1")},
		"other ServiceAccount": {spec: spec("serviceAccountName: kube-system/cameras"), says: []string{"spec.serviceAccountName"}},
		"rollout of two":       {spec: spec("rollout: {maxUnavailable: 2}")},
		"rollout of a quarter": {spec: spec("rollout: {maxUnavailable: 25%}")},
		"rollout of 0":         {spec: spec("rollout: {maxUnavailable: 0}"), says: []string{"spec.rollout.maxUnavailable", "at least 1"}},
		"rollout of 0 percent": {spec: spec("rollout: {maxUnavailable: 0%}"), says: []string{"from 1% to 100%"}},
		"rollout of a word":    {spec: spec("rollout: {maxUnavailable: some}"), says: []string{"from 1% to 100%"}},
		"value and valueFrom": {spec: "{discoveryHandler: {name: h, discoveryProperties: [{name: P, value: x, valueFrom: {secretKeyRef: " +
			"{name: s, key: k}}}]}}", says: []string{"value or valueFrom, not both"}},
		"two sources": {spec: "{discoveryHandler: {name: h, discoveryProperties: [{name: P, valueFrom: {secretKeyRef: {name: s, key: " +
			"k}, configMapKeyRef: {name: s, key: k}}}]}}", says: []string{"exactly one of"}},
		"no source": {spec: "{discoveryHandler: {name: h, discoveryProperties: [{name: P, valueFrom: {}}]}}",
			says: []string{"exactly one of"}},
		"property name": {spec: "{discoveryHandler: {name: h, discoveryProperties: [{name: 1-P, value: x}]}}",
			says: []string{"discoveryProperties[0].name"}},
		"Pod and Job": {spec: spec("brokerSpec: {brokerPodSpec: {}, brokerJobSpec: {}}"),
			says: []string{"brokerPodSpec or brokerJobSpec, not both"}},
		"old and new fields": {spec: spec("brokerSpec: {brokerPodSpec: {}}, instanceBrokerResources: [{apiVersion: v1, kind: ConfigMap, " +
			"metadata: {name: o}}]"), says: []string{"mutually exclusive"}},
		"old fields": {
			spec: spec(
				`brokerSpec: {brokerPodSpec: {containers: [{name: c, resources: {limits: {"{{PLACEHOLDER}}": "1"}}}]}}, ` +
					`instanceServiceSpec: {ports: [{port: 1}]}, configurationServiceSpec: {ports: [{port: 1}]}`,
			),
		},
		"templated everything": {
			spec: instanceResource(
				`{apiVersion: v1, kind: Service, metadata: {name: "{{INSTANCE_NAME}}/x", labels: "{{LABEL_SELECTOR}}", ` +
					`annotations: {"{{INSTANCE_NAME}}": x}}, spec: {unknown: {deep: ["{{NODES}}"]}}}`,
			),
		},
		"no kind": {spec: instanceResource(`{apiVersion: v1, metadata: {name: o}}`),
			says: []string{"instanceBrokerResources[0].kind", "Required"}},
		"expression for kind": {spec: instanceResource(`{apiVersion: v1, kind: "{{X}}", metadata: {name: o}}`),
			says: []string{"instanceBrokerResources[0].kind"}},
		"no name": {spec: instanceResource(`{apiVersion: v1, kind: Pod, metadata: {}}`),
			says: []string{"instanceBrokerResources[0].metadata.name", "Required"}},
		"generateName": {spec: instanceResource(`{apiVersion: v1, kind: Pod, metadata: {name: o, generateName: x}}`),
			says: []string{"generateName is not supported"}},
		"namespace expression": {spec: instanceResource(`{apiVersion: v1, kind: Pod, metadata: {name: o, namespace: "{{X}}"}}`),
			says: []string{"instanceBrokerResources[0].metadata.namespace"}},
		"status": {spec: instanceResource(`{apiVersion: v1, kind: Pod, metadata: {name: o}, status: {phase: Running}}`),
			says: []string{"status is written by the controller of the kind"}},
		"65 templates": {spec: instanceResource(strings.Repeat(`{apiVersion: v1, kind: Pod, metadata: {name: o}}, `, 65)),
			says: []string{"instanceBrokerResources", "64"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.name == "" {
				tc.name = "c"
			}
			object := decode(t, "{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: "+tc.name+"}, spec: "+tc.spec+"}")
			created, err := api.Resource(v0.ConfigurationResource).Namespace(namespace).Create(t.Context(), object,
				metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: "Strict"})
			if len(tc.says) == 0 {
				if err != nil {
					t.Fatalf("rejected: %v", err)
				}
				if capacity, _, _ := unstructured.NestedInt64(created.Object, "spec", "capacity"); capacity != 1 {
					t.Errorf("capacity is %d by default, want 1", capacity)
				}
				before, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "instanceBrokerResources")
				after, _, _ := unstructured.NestedFieldNoCopy(created.Object, "spec", "instanceBrokerResources")
				if text(t, before) != text(t, after) {
					t.Errorf("the templates were changed\nfrom %s\n  to %s", text(t, before), text(t, after))
				}
				return
			}
			if err == nil {
				t.Fatal("accepted")
			}
			for _, part := range tc.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the message does not contain %q: %v", part, err)
				}
			}
		})
	}
}

func text(t *testing.T, value any) string {
	t.Helper()
	out, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestSlotOwners checks that a slot must be free before it gets another owner.
func TestSlotOwners(t *testing.T) {
	config := apitest.Start(t)
	namespace := apitest.Namespace(t, config)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	api := client.Resource(v0.InstanceResource).Namespace(namespace)
	object := decode(t, "{apiVersion: akri.sh/v0, kind: Instance, metadata: {name: c-1}, spec: {configurationName: c, cdiName: akri.sh/c=1, "+
		"capacity: 2}}")
	if _, err := api.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		patch string
		legal bool
	}{
		{`{"spec":{"deviceUsage":{"c-1-0":"node-a"}}}`, true},            // absent is free
		{`{"spec":{"deviceUsage":{"c-1-0":"node-b"}}}`, false},           // stolen
		{`{"spec":{"deviceUsage":{"c-1-0":"C:0:node-a"}}}`, false},       // same node, but through the Configuration
		{`{"spec":{"deviceUsage":{"c-1-1":""}}}`, true},                  // explicitly free
		{`{"spec":{"deviceUsage":{"c-1-1":"C:0:node-b"}}}`, true},        // claimed from free
		{`{"spec":{"deviceUsage":{"c-1-0":"","c-1-1":""}}}`, true},       // both released
		{`{"spec":{"deviceUsage":{"c-1-0":"node-b","c-1-1":""}}}`, true}, // and claimed again
		{`{"spec":{"deviceUsage":null}}`, true},                          // absent again
	}
	for _, step := range steps {
		_, err := api.Patch(t.Context(), "c-1", types.MergePatchType, []byte(step.patch), metav1.PatchOptions{})
		switch {
		case step.legal && err != nil:
			t.Errorf("%s rejected: %v", step.patch, err)
		case !step.legal && err == nil:
			t.Errorf("%s accepted", step.patch)
		case !step.legal && !strings.Contains(err.Error(), "must be free"):
			t.Errorf("%s: rejected with %v", step.patch, err)
		}
	}
}

// TestInstanceNames checks that an Instance belongs to its Configuration by name, and
// for good.
func TestInstanceNames(t *testing.T) {
	api := newAPI(t)
	for name, tc := range map[string]struct {
		configuration string
		accepted      bool
	}{
		"cam-1":                              {"cam", true},
		"cam-a-1":                            {"cam-a", true},
		"cam":                                {"cam", false},
		"camera-1":                           {"cam", false},
		"other-1":                            {"cam", false},
		strings.Repeat("n", 56) + "-123456":  {strings.Repeat("n", 56), true},
		strings.Repeat("n", 56) + "-1234567": {strings.Repeat("n", 56), false},
	} {
		err := api.store("Instance", decode(t, "{kind: Instance, metadata: {name: "+name+"}, spec: {configurationName: "+tc.configuration+
			", cdiName: akri.sh/x=1, capacity: 1}}"))
		if (err == nil) != tc.accepted {
			t.Errorf("Instance %s of Configuration %s: %v", name, tc.configuration, err)
		}
	}
	smallest, err := api.of("Instance").Get(t.Context(), "c-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if shared, found, err := unstructured.NestedBool(smallest.Object, "spec", "shared"); shared || !found || err != nil {
		t.Errorf("shared is %v (%v, %v) by default, want false", shared, found, err)
	}
	if err := api.set("Instance", "spec.configurationName", "d"); err == nil || !strings.Contains(err.Error(), "never changes") {
		t.Errorf("another Configuration: %v", err)
	}
}

// TestSpellings checks that the schema and the functions for templates accept the same
// spellings of apiVersion and kind.
func TestSpellings(t *testing.T) {
	api := newAPI(t)
	template := func(apiVersion, kind string) any {
		return []any{map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "n"}}}
	}
	accepted := map[string]bool{
		"v1": true, "v1beta1": true, "v2alpha12": true, "apps/v1": true, "networking.k8s.io/v1": true, "a-b.c-d.example/v1-x": true,
		"shifu.edgenesis.io/v1alpha1": true, "stable.example.com/stable": true,
		"/v1": false, "v1/": false, "/": false, "//v1": false, "apps//v1": false, "apps/v1/": false, "/apps/v1": false, "apps/": false,
		" v1": false, "v1 ": false, "v1\n": false, "\tv1": false, "apps /v1": false, "apps/ v1": false, "V1": false, "Apps/v1": false,
		"apps/V1": false, "core": false, "v": false, "a..b/v1": false, ".a/v1": false, "a./v1": false, "-a/v1": false, "a/v1-": false,
		"a_b/v1": false, "apps/1": false, "v1{": false, "a/b/c": false, "\u0430pps/v1": false,
	}
	for apiVersion, want := range accepted {
		if got := v0.ValidAPIVersion(apiVersion); got != want {
			t.Errorf("ValidAPIVersion(%q) = %t", apiVersion, got)
		}
		if err := api.set("Configuration", "spec.instanceBrokerResources", template(apiVersion, "Pod")); (err == nil) != want {
			t.Errorf("the schema on apiVersion %q: %v", apiVersion, err)
		}
	}
	for kind, want := range map[string]bool{
		"Pod": true, "EdgeDevice": true, "V4L2Camera": true, "edge-device": true,
		"Pod ": false, " Pod": false, "Pod\n": false, "Config Map": false, "pods/status": false, "Pod.v1": false, "1Pod": false,
		"-Pod": false, "Pod-": false, "{{X}}": false, "P\u043ed": false,
	} {
		if got := v0.ValidKind(kind); got != want {
			t.Errorf("ValidKind(%q) = %t", kind, got)
		}
		if err := api.set("Configuration", "spec.configurationBrokerResources", template("v1", kind)); (err == nil) != want {
			t.Errorf("the schema on kind %q: %v", kind, err)
		}
	}
}
