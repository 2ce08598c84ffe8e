package controller_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	c := newClusterWith(t, controller.Options{Workers: 4, Policy: confine.Policy{ClusterScoped: true, OtherNamespaces: true}})
	far := apitest.Namespace(t, c.Config)
	c.Apply(elsewhere(far) + `
  - apiVersion: scheduling.k8s.io/v1
    kind: PriorityClass
    metadata: {name: "{{CONFIGURATION_NAME}}-` + c.Namespace + `"}
    value: 5
`)
	instance := c.Instance("cfg", "cfg-1", nil)
	c.ready(instance, configuration("cfg"))
	c.finalized("cfg", &v0.Configuration{}, true)
	c.finalized("cfg-1", &v0.Instance{}, true)
	remote := named("v1", "ConfigMap", far, "cfg-1")
	priority := named("scheduling.k8s.io/v1", "PriorityClass", "", "cfg-"+c.Namespace)
	if !c.found(remote) || !c.found(priority) {
		t.Fatal("an object is missing")
	}
	c.repaired(remote)

	// No longer rendered, it is deleted, and the finalizer is removed.
	c.Apply(elsewhere(far) + "\n")
	c.removed(priority)
	c.finalized("cfg", &v0.Configuration{}, false)

	// The objects of a deleted Instance in other namespaces are deleted, even if its
	// Configuration no longer exists.
	var cfg v0.Configuration
	c.Read("cfg", &cfg)
	c.delete(&cfg)
	c.delete(instance)
	c.removed(remote)
	c.removed(instance)
}

// Objects in other namespaces stay like the others when their parent is deleted with
// --cascade=orphan, and are nobody's then: no sweep may mistake them for strays.
func TestOrphanedObjectsElsewhereStay(t *testing.T) {
	c, far, cfg, instance := newClusterWithObjectsElsewhere(t)
	for _, parent := range []client.Object{cfg, instance} {
		c.delete(parent, client.PropagationPolicy(metav1.DeletePropagationOrphan))
		c.finalized(parent.GetName(), parent, false)
		object := named("v1", "ConfigMap", far, parent.GetName())
		if !c.found(object) || object.GetDeletionTimestamp() != nil {
			t.Errorf("the object of %s is deleted", parent.GetName())
		}
		if owner, found := object.GetLabels()[v0.LabelOwner]; found {
			t.Errorf("the object of %s is still owned by %s", parent.GetName(), owner)
		}
	}
}

// The report of a Configuration that is deleted right after another report does not
// wait: nothing else would happen that could make it, and the finalizer would stay.
func TestFinalReportDoesNotWait(t *testing.T) {
	c, far, cfg, instance := newClusterWithObjectsElsewhere(t)
	for _, object := range []client.Object{cfg, instance} {
		c.delete(object)
	}
	c.removed(cfg)
	c.removed(named("v1", "ConfigMap", far, "cfg"))
}

// newClusterWithObjectsElsewhere starts a controller, and returns a Configuration and an
// Instance that are ready and have an object of their name in the namespace far.
func newClusterWithObjectsElsewhere(t *testing.T) (c *cluster, far string, cfg *v0.Configuration, instance *v0.Instance) {
	t.Helper()
	c = newClusterWith(t, controller.Options{Workers: 4, Policy: confine.Policy{OtherNamespaces: true}})
	far = apitest.Namespace(t, c.Config)
	c.Apply(elsewhere(far) + `
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: "{{CONFIGURATION_NAME}}", namespace: ` + far + `}`)
	instance, cfg = c.Instance("cfg", "cfg-1", nil), configuration("cfg")
	c.ready(instance, cfg)
	return c, far, cfg, instance
}

// elsewhere returns a Configuration with an object in another namespace for each
// device, and one in its own namespace. A test may append to the latter's list.
func elsewhere(namespace string) string {
	return configWith("cfg", `
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: "{{INSTANCE_NAME}}", namespace: `) + namespace + `}
    data: {k: v}
  configurationBrokerResources:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: home}`
}

// found reads an object, and reports whether it exists.
func (c *cluster) found(object client.Object) bool {
	c.T.Helper()
	err := c.Get(c.T.Context(), client.ObjectKeyFromObject(object), object)
	if client.IgnoreNotFound(err) != nil {
		c.T.Fatal(err)
	}
	return err == nil
}

// removed waits until an object no longer exists.
func (c *cluster) removed(object client.Object) {
	c.T.Helper()
	c.Eventually("removal of "+object.GetName(), func() string {
		if c.found(object) {
			return "it still exists"
		}
		return ""
	})
}

// repaired deletes a ConfigMap of [elsewhere], which is then created again, and
// changes it, which is then reverted.
func (c *cluster) repaired(object *unstructured.Unstructured) {
	c.T.Helper()
	uid := object.GetUID()
	if err := c.Delete(c.T.Context(), object); err != nil {
		c.T.Fatal(err)
	}
	c.Eventually("a new object", func() string {
		if !c.found(object) || object.GetUID() == uid {
			return "it does not exist"
		}
		return ""
	})
	c.patch(object, `{"data":{"k":"w"}}`)
	c.Eventually("repair", func() string {
		if c.found(object); object.Object["data"].(map[string]any)["k"] != "v" {
			return "it is unchanged"
		}
		return ""
	})
}

// Nothing is created elsewhere before the parent's inventory has it: a controller
// that crashes in between leaves no stray.
func TestElsewhereAnnouncedFirst(t *testing.T) {
	options := controller.Options{Workers: 4, Policy: confine.Policy{OtherNamespaces: true}}
	c := newClusterWith(t, options)
	far := apitest.Namespace(t, c.Config)
	c.Apply(configWith("cfg", `
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: "{{INSTANCE_NAME}}", namespace: `) + far + `}
    data: {k: ["not", "a", "string"]}
`)
	instance := c.Instance("cfg", "cfg-1", nil)
	c.condition(instance, v0.ConditionApplied, metav1.ConditionFalse, v0.ReasonApplyFailed, "instanceBrokerResources[0]")
	c.Read("cfg-1", instance)
	if !slices.Contains(instance.Finalizers, v0.FinalizerCleanup) || len(instance.Status.Resources) != 1 ||
		instance.Status.Resources[0].Namespace != far {
		t.Fatalf("finalizers %v, inventory %v", instance.Finalizers, instance.Status.Resources)
	}
	c.stop()

	// It was created just before the crash, and its UID was not recorded.
	orphan := named("v1", "ConfigMap", far, "cfg-1")
	orphan.SetLabels(map[string]string{
		v0.LabelManagedBy: v0.ManagedBy, v0.LabelConfiguration: "cfg", v0.LabelInstance: "cfg-1",
		v0.LabelNamespace: c.Namespace, v0.LabelOwner: string(instance.UID),
	})
	applied := client.ApplyConfigurationFromUnstructured(orphan)
	if err := c.Client.Apply(t.Context(), applied, client.FieldOwner(v0.FieldManagerController)); err != nil {
		t.Fatal(err)
	}
	c.delete(instance)
	c.runWith(options)
	c.Eventually("removal", func() string {
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

// finalized waits until an object has the controller's finalizer, or no longer has
// it.
func (c *cluster) finalized(name string, object client.Object, want bool) {
	c.T.Helper()
	c.Eventually("finalizer", func() string {
		c.Read(name, object)
		if slices.Contains(object.GetFinalizers(), v0.FinalizerCleanup) != want {
			return "finalizers are " + name
		}
		return ""
	})
}
