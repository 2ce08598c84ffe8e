package controller_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/internal/apitest"
)

// Objects in another namespace, and without one, where the operator allows them, are
// created, repaired, pruned, and removed with their parents, although garbage
// collection does not reach them.
func TestObjectsElsewhere(t *testing.T) {
	c := startWith(t, controller.Options{Workers: 4, Policy: confine.Policy{ClusterScoped: true, OtherNamespaces: true}})
	far := apitest.Namespace(t, c.config)
	write := func(more string) {
		c.apply(`
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: cfg}
spec:
  discoveryHandler: {name: debugEcho}
  instanceBrokerResources:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: "{{INSTANCE_NAME}}", namespace: ` + far + `}
    data: {k: v}
  configurationBrokerResources:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: home}` + more)
	}
	const class = `
  - apiVersion: scheduling.k8s.io/v1
    kind: PriorityClass
    metadata: {name: "{{CONFIGURATION_NAME}}-`
	write(class + c.namespace + `"}
    value: 5
`)
	instance := c.instance("cfg", "cfg-1", nil)
	c.condition(instance, v0.ConditionReady, metav1.ConditionTrue, v0.ReasonReady)
	c.condition(configuration("cfg"), v0.ConditionReady, metav1.ConditionTrue, v0.ReasonReady)
	c.finalized("cfg", &v0.Configuration{}, true)
	c.finalized("cfg-1", &v0.Instance{}, true)
	there := func(object *unstructured.Unstructured) bool {
		err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object)
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return err == nil
	}
	remote := named("v1", "ConfigMap", far, "cfg-1")
	priority := named("scheduling.k8s.io/v1", "PriorityClass", "", "cfg-"+c.namespace)
	if !there(remote) || !there(priority) {
		t.Fatal("an object is missing")
	}

	// Deleted manually, it is created again; changed, it is repaired.
	uid := remote.GetUID()
	if err := c.Delete(t.Context(), remote); err != nil {
		t.Fatal(err)
	}
	c.eventually("a new object", func() string {
		if !there(remote) || remote.GetUID() == uid {
			return "there is none"
		}
		return ""
	})
	if err := c.Patch(t.Context(), remote, client.RawPatch(types.MergePatchType, []byte(`{"data":{"k":"w"}}`))); err != nil {
		t.Fatal(err)
	}
	c.eventually("repair", func() string {
		if there(remote); remote.Object["data"].(map[string]any)["k"] != "v" {
			return "it is as it was"
		}
		return ""
	})

	// No longer rendered, it is deleted, and the finalizer is removed.
	write("\n")
	c.eventually("removal", func() string {
		if there(priority) {
			return "the PriorityClass is there"
		}
		return ""
	})
	c.finalized("cfg", &v0.Configuration{}, false)

	// The objects of a deleted Instance in other namespaces are deleted, even if its
	// Configuration no longer exists.
	var cfg v0.Configuration
	c.get("cfg", &cfg)
	if err := c.Delete(t.Context(), &cfg); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), instance); err != nil {
		t.Fatal(err)
	}
	c.eventually("removal", func() string {
		if there(remote) {
			return "the object is there"
		}
		return ""
	})
	c.eventually("removal of the Instance", func() string {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(instance), instance); client.IgnoreNotFound(err) != nil || err == nil {
			return "it is there"
		}
		return ""
	})
}

// Nothing is made elsewhere before its parent remembers it: a controller that
// dies in between leaves no orphan.
func TestElsewhereAnnouncedFirst(t *testing.T) {
	options := controller.Options{Workers: 4, Policy: confine.Policy{OtherNamespaces: true}}
	c := startWith(t, options)
	far := apitest.Namespace(t, c.config)
	c.apply(`
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: cfg}
spec:
  discoveryHandler: {name: debugEcho}
  instanceBrokerResources:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: "{{INSTANCE_NAME}}", namespace: ` + far + `}
    data: {k: ["not", "a", "string"]}
`)
	instance := c.instance("cfg", "cfg-1", nil)
	c.condition(instance, v0.ConditionApplied, metav1.ConditionFalse, v0.ReasonApplyFailed, "instanceBrokerResources[0]")
	c.get("cfg-1", instance)
	if !slices.Contains(instance.Finalizers, v0.FinalizerElsewhere) || len(instance.Status.Resources) != 1 ||
		instance.Status.Resources[0].Namespace != far {
		t.Fatalf("finalizers %v, inventory %v", instance.Finalizers, instance.Status.Resources)
	}
	c.stop()

	// Made just before it died, and not written down: the UID is not known.
	orphan := named("v1", "ConfigMap", far, "cfg-1")
	orphan.SetLabels(map[string]string{
		v0.LabelManagedBy: v0.ManagedBy, v0.LabelConfiguration: "cfg", v0.LabelInstance: "cfg-1",
		v0.LabelNamespace: c.namespace, v0.LabelOwner: string(instance.UID),
	})
	if err := c.Create(t.Context(), orphan); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), instance); err != nil {
		t.Fatal(err)
	}
	c.runWith(options)
	c.eventually("removal", func() string {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(orphan), orphan); client.IgnoreNotFound(err) != nil || err == nil {
			return "the object is there"
		}
		return ""
	})
}

func named(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// finalized waits until an object has our finalizer, or has it no more.
func (c *cluster) finalized(name string, object client.Object, want bool) {
	c.t.Helper()
	c.eventually("finalizer", func() string {
		c.get(name, object)
		if slices.Contains(object.GetFinalizers(), v0.FinalizerElsewhere) != want {
			return "finalizers are " + name
		}
		return ""
	})
}
