package controller_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
)

// mutate installs a policy for the world's namespace, and waits until it changes a new
// Deployment: the API server's cache is slow.
func (c *cluster) mutate(policy string, changed func(probe *unstructured.Unstructured) bool) {
	c.T.Helper()
	ctx := context.WithoutCancel(c.T.Context())
	c.Apply(strings.ReplaceAll(policy, "NAME", c.Namespace))
	c.T.Cleanup(func() {
		for _, kind := range []string{"MutatingAdmissionPolicyBinding", "MutatingAdmissionPolicy"} {
			_ = c.Delete(ctx, named("admissionregistration.k8s.io/v1", kind, "", c.Namespace))
		}
	})
	c.Eventually("the policy changes Deployments", func() string {
		c.Apply(deploymentNamed("probe"))
		probe := c.read("apps/v1 Deployment probe")
		defer c.Delete(ctx, probe)
		if !changed(probe) {
			return "the probe is as it was created"
		}
		return ""
	})
}

func deploymentNamed(name string) string {
	return `
apiVersion: apps/v1
kind: Deployment
metadata: {name: ` + name + `}
spec:
  selector: {matchLabels: {app: broker}}
  template:
    metadata: {labels: {app: broker}}
    spec:
      containers:
      - {name: main, image: main}`
}

func namesIn(object *unstructured.Unstructured, list string) []string {
	var names []string
	for _, entry := range listIn(object, list) {
		names = append(names, entry.(map[string]any)["name"].(string))
	}
	slices.Sort(names)
	return names
}

func listIn(object *unstructured.Unstructured, list string) []any {
	var current any = object.Object
	for name := range strings.SplitSeq(list, ".") {
		switch node := current.(type) {
		case map[string]any:
			current = node[name]
		case []any:
			current = node[0] // the first is the only one that tests look into
		}
	}
	listed, _ := current.([]any)
	return listed
}

// portsOf returns the ports of a Service.
func portsOf(service *unstructured.Unstructured) string {
	var text []string
	for _, port := range listIn(service, "spec.ports") {
		text = append(text, fmt.Sprint(port.(map[string]any)["port"]))
	}
	return strings.Join(text, " ")
}

func lacks(names []string, wanted ...string) string {
	for _, name := range wanted {
		if !slices.Contains(names, name) {
			return fmt.Sprintf("%s is missing: %v", name, names)
		}
	}
	return ""
}

// defaulter sets a field that a template does not have, as admission webhooks do.
const defaulter = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: NAME}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAME}}
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}
  matchConditions:
  - {name: unset, expression: "!has(object.spec.template.spec.priorityClassName)"}
  failurePolicy: Fail
  reinvocationPolicy: Never
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: >-
        Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{priorityClassName: "defaulted"}}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: NAME}
spec: {policyName: NAME}
`

// Entries and values that others add to objects of the controller, or that admission and
// the API server default, cost no write, and stay when the controller repairs its own.
func TestWhatOthersAddStays(t *testing.T) {
	c := newCluster(t)
	class := func(object *unstructured.Unstructured) string {
		value, _, _ := unstructured.NestedString(object.Object, "spec", "template", "spec", "priorityClassName")
		return value
	}
	c.mutate(defaulter, func(probe *unstructured.Unstructured) bool { return class(probe) != "" })
	c.Apply(strings.Replace(repairTemplates, "spec: {ports: [{port: 80}]", "spec: {type: NodePort, ports: [{port: 80}]", 1))
	instance := c.Instance("cfg", "cfg-1", nil)
	c.condition(instance, v0.ConditionApplied, metav1.ConditionTrue, v0.ReasonApplied)
	c.condition(configuration("cfg"), v0.ConditionApplied, metav1.ConditionTrue, v0.ReasonApplied)

	const (
		service    = "v1 Service single"
		double     = "v1 Service double"
		deployment = "apps/v1 Deployment broker"
	)
	nodePort := func(object *unstructured.Unstructured) any {
		return listIn(object, "spec.ports")[0].(map[string]any)["nodePort"]
	}
	chosen := nodePort(c.read(service))
	if chosen == nil {
		t.Fatal("the API server has chosen no node port")
	}
	for _, test := range []struct {
		name, object string
		add          foreignEdit // none if it is there already
		change       foreignEdit // of what the template sets
		stays        func(*unstructured.Unstructured) string
	}{
		{
			"a node port that the API server has chosen", service, foreignEdit{}, update("spec.ports.0.port", 81),
			func(o *unstructured.Unstructured) string {
				if portsOf(o) != "80" || nodePort(o) != chosen {
					return fmt.Sprint(listIn(o, "spec.ports"))
				}
				return ""
			},
		},
		{
			"a port of a Service", double,
			patch(types.JSONPatchType, `[{"op": "add", "path": "/spec/ports/-", "value": {"name": "c", "port": 443}}]`).by("mesh"),
			update("spec.ports.0.port", 81),
			func(o *unstructured.Unstructured) string {
				if got := strings.Fields(portsOf(o)); !slices.Contains(got, "443") || !slices.Contains(got, "80") || len(got) != 3 {
					return portsOf(o)
				}
				return ""
			},
		},
		{
			"a sidecar, injected later", deployment,
			patch(types.JSONPatchType,
				`[{"op": "add", "path": "/spec/template/spec/containers/-", "value": {"name": "sidecar", "image": "s"}}]`).by("mesh"),
			update(containers+".0.name", "renamed"),
			func(o *unstructured.Unstructured) string {
				names := namesIn(o, containers)
				if complaint := lacks(names, "main", "other", "sidecar"); complaint != "" || len(names) != 3 {
					return fmt.Sprint(names)
				}
				return ""
			},
		},
		{
			"a variable of another manager's apply", deployment,
			patch(types.ApplyPatchType,
				strings.Replace(deploymentNamed("broker"), "image: main", "env: [{name: APPLIED, value: x}]", 1)).by("other"),
			update(containers+".0.image", "other"),
			func(o *unstructured.Unstructured) string { return lacks(namesIn(o, mainEnv), "A", "B", "APPLIED") },
		},
		{
			"a variable that another controller patches", deployment,
			patch(types.StrategicMergePatchType,
				`{"spec":{"template":{"spec":{"containers":[{"name":"main","env":[{"name":"SET","value":"x"}]}]}}}}`).by("mesh"),
			update(containers+".1.name", "renamed"),
			func(o *unstructured.Unstructured) string {
				return lacks(append(namesIn(o, mainEnv), namesIn(o, containers)...), "A", "B", "APPLIED", "SET", "main", "other")
			},
		},
		{
			"replicas that an autoscaler sets", deployment, patch(types.MergePatchType, `{"spec":{"replicas":3}}`).by("autoscaler"),
			update(containers+".0.image", "other"),
			func(o *unstructured.Unstructured) string {
				if replicas, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas"); replicas != 3 {
					return fmt.Sprint(replicas)
				}
				return ""
			},
		},
		{
			"a value that admission defaults", deployment, foreignEdit{}, update(containers+".0.image", "other"),
			func(o *unstructured.Unstructured) string {
				image := listIn(o, containers)[0].(map[string]any)["image"]
				if class(o) != "defaulted" || image != "main" {
					return fmt.Sprint(class(o), image)
				}
				return ""
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := c.in(t)
			writes := c.settled()
			if test.add.body != "" {
				c.edit(test.object, test.add)
			}
			if complaint := test.stays(c.read(test.object)); complaint != "" {
				t.Error(complaint)
			}
			if after := c.settled(); after != writes {
				t.Errorf("%d writes because of it", after-writes)
			}
			c.edit(test.object, test.change)
			c.settled()
			c.Eventually("repair", func() string { return test.stays(c.read(test.object)) })
		})
	}
}
