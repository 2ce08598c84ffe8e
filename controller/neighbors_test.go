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

// injector adds a sidecar to each Deployment of a namespace, on creation and on
// update, as service meshes do.
const injector = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: NAME}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAME}}
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}
  matchConditions:
  - {name: none-yet, expression: "!object.spec.template.spec.containers.exists(c, c.name == 'sidecar')"}
  failurePolicy: Fail
  reinvocationPolicy: Never
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        [JSONPatch{op: "add", path: "/spec/template/spec/containers/-",
        value: Object.spec.template.spec.containers{name: "sidecar", image: "sidecar"}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: NAME}
spec: {policyName: NAME}
`

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

// What others have added next to the controller's list entries stays, also when an
// entry of the controller's is repaired.
func TestNeighborsOfListEntriesStay(t *testing.T) {
	c := newCluster(t)
	c.mutate(injector, func(probe *unstructured.Unstructured) bool {
		return slices.Contains(namesIn(probe, containers), "sidecar")
	})
	c.Apply(repairTemplates)
	instance := c.Instance("cfg", "cfg-1", nil)
	c.condition(instance, v0.ConditionApplied, metav1.ConditionTrue, v0.ReasonApplied)
	c.condition(configuration("cfg"), v0.ConditionApplied, metav1.ConditionTrue, v0.ReasonApplied)

	const deployment = "apps/v1 Deployment broker"
	apply := func(manager, body string) foreignEdit { return patch(types.ApplyPatchType, body).by(manager) }
	for _, step := range []struct {
		name  string
		edit  foreignEdit
		added string // in the list of variables
	}{
		{"server-side apply by another manager", apply("other", strings.Replace(deploymentNamed("broker"),
			"image: main", "env: [{name: APPLIED, value: x}]", 1)), "APPLIED"},
		{"a patch by another controller", patch(types.StrategicMergePatchType,
			`{"spec":{"template":{"spec":{"containers":[{"name":"main","env":[{"name":"SET","value":"x"}]}]}}}}`).by("mesh"), "SET"},
		{"a JSON Patch by another controller", patch(types.JSONPatchType,
			`[{"op":"add","path":"/spec/template/spec/containers/0/env/-","value":{"name":"PATCHED","value":"x"}}]`).by("mesh"), "PATCHED"},
	} {
		t.Run(step.name, func(t *testing.T) {
			c := c.in(t)
			writes := c.settled()
			c.edit(deployment, step.edit)
			if after := c.settled(); after != writes {
				t.Errorf("%d writes because of another client's entry", after-writes)
			}
			for list, name := range map[string]string{mainEnv: "A", containers: "other"} {
				before := c.read(deployment)
				index := slices.IndexFunc(listIn(before, list), func(entry any) bool { return entry.(map[string]any)["name"] == name })
				c.edit(deployment, update(fmt.Sprintf("%s.%d.name", list, index), "renamed"))
				c.Eventually("repair", func() string { return entries(before, c.read(deployment)) })
			}
			if complaint := lacks(c.names("broker", mainEnv), "A", "B", step.added); complaint != "" {
				t.Error(complaint)
			}
			if complaint := lacks(c.names("broker", containers), "main", "other", "sidecar"); complaint != "" {
				t.Error(complaint)
			}
		})
	}
	// The number of replicas, as an autoscaler sets it, is not in the template.
	c.edit(deployment, update("spec.replicas", 3).by("autoscaler"))
	version := c.read(deployment).GetResourceVersion()
	c.settled()
	if now := c.read(deployment); now.GetResourceVersion() != version {
		t.Errorf("it was written: %v", now.Object["spec"])
	}
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

// names returns the sorted names in a list of a Deployment.
func (c *cluster) names(deployment, list string) []string {
	c.T.Helper()
	return namesIn(c.read("apps/v1 Deployment "+deployment), list)
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

// entries compares the names of containers and variables of two Deployments.
func entries(want, got *unstructured.Unstructured) string {
	for _, list := range []string{containers, mainEnv} {
		if before, now := namesIn(want, list), namesIn(got, list); !slices.Equal(before, now) {
			return fmt.Sprintf("%s has %v, want %v", list, now, before)
		}
	}
	return ""
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
			c.Eventually("repair", func() string { return test.stays(c.read(test.object)) })
		})
	}
}
