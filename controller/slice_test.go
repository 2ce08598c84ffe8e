package controller_test

import (
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
)

// The proposal's example: a Pod and a Service for each device, a Service for all.
func TestTheProposalsExample(t *testing.T) {
	c := newCluster(t)
	text, err := os.ReadFile("../examples/debug-echo/configuration.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c.Apply(string(text))
	const name = "akri-debug-echo-foo"
	c.condition(configuration(name), v0.ConditionReady, metav1.ConditionFalse, v0.ReasonNoInstances)

	first := c.Instance(name, name+"-8120fe", map[string]string{"DEBUG_ECHO_DESCRIPTION": "foo0"})
	second := c.Instance(name, name+"-a19705", map[string]string{"DEBUG_ECHO_DESCRIPTION": "foo1"})
	for _, instance := range []*v0.Instance{first, second} {
		pod := c.exists("v1", "Pod", instance.Name+"-pod")
		service := c.exists("v1", "Service", instance.Name+"-svc")
		selector, _, _ := unstructured.NestedStringMap(service.Object, "spec", "selector")
		if len(selector) == 0 || !matches(selector, pod.GetLabels()) {
			t.Errorf("selector %v of %s does not match the labels %v of its Pod", selector, service.GetName(), pod.GetLabels())
		}
		if owner := metav1.GetControllerOf(pod); owner == nil || owner.UID != instance.UID {
			t.Errorf("Pod %s is owned by %v, want Instance %s", pod.GetName(), owner, instance.Name)
		}
		containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
		limits, _, _ := unstructured.NestedStringMap(containers[0].(map[string]any), "resources", "limits")
		if limits["akri.sh/"+instance.Name] != "1" {
			t.Errorf("limits of %s: %v", pod.GetName(), limits)
		}
	}
	group := c.exists("v1", "Service", name+"-svc")
	selector, _, _ := unstructured.NestedStringMap(group.Object, "spec", "selector")
	for _, instance := range []*v0.Instance{first, second} {
		if pod := c.object("v1", "Pod", instance.Name+"-pod"); !matches(selector, pod.GetLabels()) {
			t.Errorf("selector %v of the group's Service does not match %v", selector, pod.GetLabels())
		}
	}
	c.condition(first, v0.ConditionApplied, metav1.ConditionTrue, v0.ReasonApplied)
	c.condition(configuration(name), v0.ConditionApplied, metav1.ConditionTrue, v0.ReasonApplied)
	// No kubelet here: the Pods stay Pending.
	c.condition(configuration(name), v0.ConditionReady, metav1.ConditionFalse, v0.ReasonProgressing, first.Name)

	// The last device is removed, and with it the group's objects.
	for _, instance := range []*v0.Instance{first, second} {
		c.delete(instance)
	}
	c.gone("v1", "Service", name+"-svc")
	c.condition(configuration(name), v0.ConditionReady, metav1.ConditionFalse, v0.ReasonNoInstances)
}

func matches(selector, labels map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return true
}

const config = `
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: cfg}
spec:
  discoveryHandler: {name: debugEcho}
  instanceBrokerResources:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: "{{INSTANCE_NAME}}-a"}
    data: {description: "{{INSTANCE_PROPERTIES.TEXT}}"}
  - apiVersion: v1
    kind: Service
    metadata: {name: "{{INSTANCE_NAME}}-b"}
    spec: {ports: [{port: 80}], selector: "{{LABEL_SELECTOR}}"}
  configurationBrokerResources:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: group}
    data: {nodes: "{{NODES}} are all"}
`

func TestDriftIsRepaired(t *testing.T) {
	c := newCluster(t)
	c.Apply(config)
	instance := c.Instance("cfg", "cfg-1", map[string]string{"TEXT": "foo"})
	c.ready(instance, configuration("cfg"))

	t.Run("deleted", func(t *testing.T) {
		c := c.in(t)
		before := c.exists("v1", "Service", "cfg-1-b")
		c.delete(before)
		c.replaced(before)
	})
	edits := map[string]string{
		"value":           `{"data":{"description":"bar"}}`,
		"removed value":   `{"data":{"description":null}}`,
		"label":           `{"metadata":{"labels":{"akri.sh/instance":"other"}}}`,
		"removed label":   `{"metadata":{"labels":{"app.kubernetes.io/managed-by":null}}}`,
		"removed owner":   `{"metadata":{"ownerReferences":null}}`,
		"managed fields":  `{"metadata":{"managedFields":[{}]}}`,
		"everything ours": `{"data":null,"metadata":{"labels":null,"ownerReferences":null,"managedFields":[{}]}}`,
	}
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			c := c.in(t)
			object := c.exists("v1", "ConfigMap", "cfg-1-a")
			edited := object.DeepCopy()
			if err := c.Patch(
				t.Context(),
				edited,
				client.RawPatch(types.MergePatchType, []byte(edit)),
				client.FieldOwner("kubectl-edit"),
			); err != nil {
				t.Fatal(err)
			}
			c.Eventually("repair", func() string {
				now := c.object("v1", "ConfigMap", "cfg-1-a")
				data, _, _ := unstructured.NestedStringMap(now.Object, "data")
				owner := metav1.GetControllerOf(now)
				switch {
				case now.GetUID() != object.GetUID():
					return "it was replaced"
				case data["description"] != "foo":
					return "data is " + data["description"]
				case now.GetLabels()[v0.LabelInstance] != "cfg-1" || now.GetLabels()[v0.LabelManagedBy] != v0.ManagedBy:
					return "labels are wrong"
				case owner == nil || owner.UID != instance.UID:
					return "the owner is wrong"
				}
				return ""
			})
		})
	}
	c.ready(instance)
}

func TestRestartWritesNothing(t *testing.T) {
	c := newCluster(t)
	c.Apply(config)
	for _, name := range []string{"cfg-1", "cfg-2", "cfg-3"} {
		instance := c.Instance("cfg", name, map[string]string{"TEXT": "foo"})
		c.ready(instance)
	}
	c.ready(configuration("cfg"))
	made := c.settled()
	if made < 3*2+1+3+1 {
		t.Fatalf("only %d writes were counted: the counter does not work", made)
	}
	c.stop()
	c.run()
	if after := c.settled(); after != made {
		t.Errorf("%d writes after a restart", after-made)
	}
}

func TestTemplateEdits(t *testing.T) {
	c := newCluster(t)
	c.Apply(config)
	instance := c.Instance("cfg", "cfg-1", map[string]string{"TEXT": "foo"})
	c.ready(instance)

	c.Apply(configWith("cfg", `
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: "{{INSTANCE_NAME}}-a"}
    data: {description: "the {{INSTANCE_PROPERTIES.TEXT}}"}`))
	c.has("cfg-1-a", "description", "the foo")
	c.gone("v1", "Service", "cfg-1-b")
	c.gone("v1", "ConfigMap", "group")

	// A device's property changes.
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"brokerProperties":{"TEXT":"bar"}}}`))
	if err := c.Patch(t.Context(), instance, patch); err != nil {
		t.Fatal(err)
	}
	c.has("cfg-1-a", "description", "the bar")
}
