package controller_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
)

// A kind whose CustomResourceDefinition is installed after the controller has
// started, and after the Configuration that names it.
func TestKindInstalledLater(t *testing.T) {
	c := newCluster(t)
	c.Apply(configWith("cfg", `
  - apiVersion: test.akri.sh/v1
    kind: Twin
    metadata: {name: "{{INSTANCE_NAME}}"}
    spec: {address: "{{INSTANCE_PROPERTIES.TEXT}}", nodes: "{{NODES}}", replicas: "{{ len NODES }}"}
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: "{{INSTANCE_NAME}}"}`))
	// It is reported before the first device is found.
	c.condition(
		configuration("cfg"),
		v0.ConditionApplied,
		metav1.ConditionFalse,
		v0.ReasonKindUnavailable,
		`"Twin"`,
		`"test.akri.sh/v1"`,
		"CustomResourceDefinition",
	)
	instance := c.Instance("cfg", "cfg-1", map[string]string{"TEXT": "10.0.0.1"})
	c.condition(instance, v0.ConditionApplied, metav1.ConditionFalse, v0.ReasonKindUnavailable, "instanceBrokerResources[0]", `"Twin"`)
	c.exists("v1", "ConfigMap", "cfg-1") // its sibling does not wait

	c.installTwins()
	twin := c.exists("test.akri.sh/v1", "Twin", "cfg-1")
	spec := twin.Object["spec"].(map[string]any)
	if spec["address"] != "10.0.0.1" || spec["replicas"] != int64(1) || len(spec["nodes"].([]any)) != 1 {
		t.Errorf("spec of the custom resource: %#v", spec)
	}
	c.ready(instance, configuration("cfg"))

	// Its objects are watched like any other.
	c.delete(twin)
	c.replaced(twin)
}

// A kind whose CustomResourceDefinition is deleted, and created with another plural or
// scope.
func TestKindInstalledAgain(t *testing.T) {
	c := newCluster(t)
	c.installTwins()
	c.Apply(`
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: cfg}
spec:
  discoveryHandler: {name: debugEcho}
  instanceBrokerResources: [{apiVersion: test.akri.sh/v1, kind: Twin, metadata: {name: "{{INSTANCE_NAME}}"}}]
`)
	instance := c.Instance("cfg", "cfg-1", nil)
	c.ready(instance)
	old := c.exists("test.akri.sh/v1", "Twin", "cfg-1")

	c.uninstall("twins")
	c.install("doubles", "Namespaced")
	c.Eventually("a Twin of the new resource", func() string {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("test.akri.sh/v1")
		list.SetKind("TwinList")
		fresh, err := client.New(c.Config, client.Options{}) // this test's own client does not notice either
		if err != nil {
			t.Fatal(err)
		}
		if err := fresh.List(t.Context(), list, client.InNamespace(c.Namespace)); err != nil {
			return err.Error()
		}
		if len(list.Items) != 1 || list.Items[0].GetUID() == old.GetUID() {
			return fmt.Sprint(list.Items)
		}
		return ""
	})
	c.ready(instance)

	c.uninstall("doubles")
	c.install("twins", "Cluster")
	c.condition(instance, v0.ConditionApplied, metav1.ConditionFalse, v0.ReasonRefused, "Twin", "is cluster-scoped")
}

// An object whose template is removed is deleted, although the version in which it was
// applied is no longer served.
func TestObjectOfVersionNoLongerServedIsPruned(t *testing.T) {
	c := newCluster(t)
	c.installVersions("twins", "Namespaced", map[string]bool{"v1": true, "v1beta1": true})
	group := `
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: cfg}
spec:
  discoveryHandler: {name: debugEcho}
`
	c.Apply(group + `  instanceBrokerResources: [{apiVersion: test.akri.sh/v1beta1, kind: Twin, metadata: {name: "{{INSTANCE_NAME}}"}}]`)
	instance := c.Instance("cfg", "cfg-1", nil)
	c.ready(instance)
	c.exists("test.akri.sh/v1", "Twin", "cfg-1")

	c.installVersions("twins", "Namespaced", map[string]bool{"v1": true, "v1beta1": false})
	c.condition(instance, v0.ConditionApplied, metav1.ConditionFalse, v0.ReasonKindUnavailable, "v1beta1")
	c.exists("test.akri.sh/v1", "Twin", "cfg-1")
	c.Apply(group)
	c.condition(instance, v0.ConditionApplied, metav1.ConditionTrue, v0.ReasonApplied)
	if twin := c.object("test.akri.sh/v1", "Twin", "cfg-1"); twin != nil {
		t.Error("the Twin still exists, although no template renders it, and the inventory has forgotten it")
	}
}

// installTwins installs the kind Twin until the test ends.
func (c *cluster) installTwins() {
	c.T.Helper()
	c.install("twins", "Namespaced")
}

// install installs the kind Twin with a plural and a scope until the test ends.
func (c *cluster) install(plural, scope string) {
	c.T.Helper()
	c.installVersions(plural, scope, map[string]bool{"v1": true})
}

// installVersions installs the kind Twin like install, in versions that are served or not. It
// is stored as v1.
func (c *cluster) installVersions(plural, scope string, served map[string]bool) {
	c.T.Helper()
	var versions strings.Builder
	for _, version := range slices.Sorted(maps.Keys(served)) {
		fmt.Fprintf(&versions, `
  - name: %s
    served: %t
    storage: %t
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
`, version, served[version], version == "v1")
	}
	c.Apply(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ` + plural + `.test.akri.sh}
spec:
  group: test.akri.sh
  scope: ` + scope + `
  names: {kind: Twin, listKind: TwinList, plural: ` + plural + `, singular: twin}
  versions:` + versions.String())
	c.T.Cleanup(func() { c.uninstall(plural) })
}

// uninstall removes a CustomResourceDefinition of the kind Twin, and its objects.
func (c *cluster) uninstall(plural string) {
	c.T.Helper()
	definition := &unstructured.Unstructured{}
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	definition.SetKind("CustomResourceDefinition")
	definition.SetName(plural + ".test.akri.sh")
	ctx := context.WithoutCancel(c.T.Context())
	if err := c.Delete(ctx, definition); client.IgnoreNotFound(err) != nil {
		c.T.Error(err)
	}
	c.Eventually("the CustomResourceDefinition is gone", func() string {
		if err := c.Get(ctx, client.ObjectKey{Name: definition.GetName()}, definition); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Sprint("it is there: ", err)
		}
		return ""
	})
}

// Akri's legacy fields are handled like broker resources.
func TestLegacyFields(t *testing.T) {
	c := newCluster(t)
	c.Apply(`
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: cfg}
spec:
  discoveryHandler: {name: debugEcho}
  brokerSpec:
    brokerPodSpec:
      containers: [{name: c, image: i, resources: {limits: {"{{PLACEHOLDER}}": "1"}}}]
  instanceServiceSpec: {ports: [{port: 99999}]}
  configurationServiceSpec: {ports: [{port: 80}]}
`)
	instance := c.Instance("cfg", "cfg-1", nil)
	pods := &unstructured.UnstructuredList{}
	pods.SetAPIVersion("v1")
	pods.SetKind("PodList")
	c.Eventually("a Pod", func() string {
		if err := c.List(t.Context(), pods, client.InNamespace(c.Namespace)); err != nil {
			t.Fatal(err)
		}
		if len(pods.Items) == 0 {
			return "there is none"
		}
		return ""
	})
	group := c.exists("v1", "Service", "cfg-svc")
	selector, _, _ := unstructured.NestedStringMap(group.Object, "spec", "selector")
	if labels := pods.Items[0].GetLabels(); !matches(selector, labels) || labels["akri.sh/target-node"] != "node-a" {
		t.Errorf("selector %v, labels %v", selector, labels)
	}
	if n := c.settled(); n > 12 {
		t.Errorf("%d writes for two objects: an object is applied repeatedly", n)
	}
	// A mistake in a legacy field is reported under the field's name.
	c.condition(instance, v0.ConditionApplied, metav1.ConditionFalse, v0.ReasonApplyFailed, "instanceServiceSpec: ", "spec.ports[0].port")
}

func TestConflictPolicies(t *testing.T) {
	c := newCluster(t)
	for _, metadata := range []string{
		"{name: take}", "{name: skip}",
		"{name: take-labelled, labels: {" + v0.LabelManagedBy + ": " + v0.ManagedBy + ", " +
			v0.LabelConfiguration + ": cfg, " + v0.LabelInstance + ": cfg-1}}",
	} {
		c.Apply("apiVersion: v1\nkind: ConfigMap\nmetadata: " + metadata + "\ndata: {theirs: x, k: theirs}")
	}
	c.Apply(configWith("cfg", `
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: take, annotations: {akri.sh/on-conflict: adopt}}, data: {k: ours}}
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: take-labelled, annotations: {akri.sh/on-conflict: adopt}}, data: {k: ours}}
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: skip, annotations: {akri.sh/on-conflict: skip}}, data: {k: ours}}`))
	instance := c.Instance("cfg", "cfg-1", nil)
	c.ready(instance)
	for name, want := range map[string]string{"take": "ours", "take-labelled": "ours", "skip": "theirs"} {
		object := c.exists("v1", "ConfigMap", name)
		data, _, _ := unstructured.NestedStringMap(object.Object, "data")
		if data["k"] != want || data["theirs"] != "x" {
			t.Errorf("%s: data %v, want k=%s and the other existing keys", name, data, want)
		}
		if owned := metav1.GetControllerOf(object) != nil; owned != (want == "ours") {
			t.Errorf("%s: owned is %t", name, owned)
		}
	}
	// A skipped object is not removed with its template.
	c.Apply(configWith("cfg", " []"))
	c.gone("v1", "ConfigMap", "take")
	c.gone("v1", "ConfigMap", "take-labelled")
	c.settled()
	c.exists("v1", "ConfigMap", "skip")
}

// An object that several Instances render with on-conflict: skip lasts as long as one of
// them does.
func TestSkippedObjectOutlivesItsOwner(t *testing.T) {
	c := newCluster(t)
	c.Apply(configWith("cfg", `
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: shared, annotations: {akri.sh/on-conflict: skip}}}`))
	owner := c.Instance("cfg", "cfg-0", nil)
	for i := range 2 {
		c.ready(owner)
		next := c.Instance("cfg", fmt.Sprintf("cfg-%d", i+1), nil)
		c.ready(next)
		c.settled()
		if object := c.exists("v1", "ConfigMap", "shared"); !metav1.IsControlledBy(object, owner) {
			t.Fatalf("the object is owned by %v, want %s", object.GetOwnerReferences(), owner.Name)
		}
		c.delete(owner)
		c.Eventually("the object of the next owner", func() string {
			if object := c.object("v1", "ConfigMap", "shared"); object == nil || !metav1.IsControlledBy(object, next) {
				return "it is not there"
			}
			return ""
		})
		owner = next
	}
}

// An object that outlives its template and its device.
func TestOrphans(t *testing.T) {
	c := newCluster(t)
	c.Apply(configWith("cfg", `
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: "{{INSTANCE_NAME}}", annotations: {akri.sh/deletion-policy: orphan}}
    data: {k: v}`))
	instance := c.Instance("cfg", "cfg-1", nil)
	c.ready(instance)
	object := c.exists("v1", "ConfigMap", "cfg-1")
	if owners := object.GetOwnerReferences(); len(owners) > 0 {
		t.Errorf("owned by %v: garbage collection would remove it", owners)
	}
	// It is repaired like any other.
	c.patch(object, `{"data":{"k":"x"}}`)
	c.has("cfg-1", "k", "v")
	c.Apply(configWith("cfg", " []"))
	c.Eventually("an empty inventory", func() string {
		c.Read("cfg-1", instance)
		if len(instance.Status.Resources) > 0 {
			return "it is not"
		}
		return ""
	})
	c.settled()
	if now := c.exists("v1", "ConfigMap", "cfg-1"); now.GetUID() != object.GetUID() {
		t.Error("it was replaced")
	}
}

// Readiness by a template's own condition.
func TestReadyWhen(t *testing.T) {
	c := newCluster(t)
	config := func(wanted string) string {
		return configWith("cfg", `
  - apiVersion: v1
    kind: ConfigMap
    metadata:
      name: "{{INSTANCE_NAME}}"
      annotations: {akri.sh/ready-when: "has(self.data.state) && self.data.state == '`) + wanted + `'"}
    data: {k: v}
`
	}
	c.Apply(config("up"))
	instance := c.Instance("cfg", "cfg-1", nil)
	c.condition(instance, v0.ConditionReady, metav1.ConditionFalse, v0.ReasonProgressing, "ready-when")
	state := func(value string) {
		object := c.exists("v1", "ConfigMap", "cfg-1")
		c.patch(object, `{"data":{"state":"`+value+`"}}`)
	}
	state("up")
	c.ready(instance)
	c.Apply(config("running")) // a new condition on existing objects
	c.condition(instance, v0.ConditionReady, metav1.ConditionFalse, v0.ReasonProgressing, "ready-when")
	state("running")
	c.ready(instance)
}
