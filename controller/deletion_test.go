package controller_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/internal/apitest"
)

// create creates an object that is not the controller's.
func (c *cluster) create(apiVersion, kind, namespace, name string, labels map[string]string) *unstructured.Unstructured {
	c.T.Helper()
	object := named(apiVersion, kind, namespace, name)
	object.SetLabels(labels)
	if err := c.Create(c.T.Context(), object, client.FieldOwner("somebody")); err != nil {
		c.T.Fatal(err)
	}
	return object
}

// unchanged fails if an object was written or deleted since it was read.
func (c *cluster) unchanged(object *unstructured.Unstructured) {
	c.T.Helper()
	now := named(object.GetAPIVersion(), object.GetKind(), object.GetNamespace(), object.GetName())
	switch {
	case !c.found(now):
		c.T.Errorf("%s %s/%s was deleted", object.GetKind(), object.GetNamespace(), object.GetName())
	case now.GetResourceVersion() != object.GetResourceVersion():
		c.T.Errorf("%s %s/%s was changed", object.GetKind(), object.GetNamespace(), object.GetName())
	}
}

// statusWith returns a patch of a status that lists ConfigMaps as if they had been
// applied.
func statusWith(objects ...*unstructured.Unstructured) client.Patch {
	var entries []v0.ResourceStatus
	for _, object := range objects {
		entries = append(entries, v0.ResourceStatus{
			Version: "v1", Kind: "ConfigMap", Namespace: object.GetNamespace(), Name: object.GetName(),
			UID: string(object.GetUID()), Hash: "i", ManagedFieldsHash: "f", Ready: true,
		})
	}
	body, err := json.Marshal(map[string]any{"status": map[string]any{"resources": entries}})
	if err != nil {
		panic(err)
	}
	return client.RawPatch(types.MergePatchType, body)
}

// A status that lists other people's objects, and labels that name a parent, delete
// nothing and take nothing over.
func TestNothingIsBelieved(t *testing.T) {
	options := controller.Options{Workers: 4, Policy: confine.Policy{OtherNamespaces: true}}
	c := newClusterWith(t, options)
	far := apitest.Namespace(t, c.Config)
	c.Apply(elsewhere(far))
	c.Apply(`
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: empty}
spec: {discoveryHandler: {name: debugEcho}}
`)
	instance := c.Instance("cfg", "cfg-1", nil)
	other := c.Instance("empty", "empty-1", nil)
	c.ready(instance, other)
	c.ready(configuration("cfg"))
	victims := named("v1", "ConfigMap", far, "cfg-1") // the controller's own, for another Instance
	if !c.found(victims) {
		t.Fatal("there is no object elsewhere")
	}
	c.stop()

	ours := map[string]string{
		v0.LabelManagedBy: v0.ManagedBy, v0.LabelConfiguration: "empty", v0.LabelInstance: "empty-1",
		v0.LabelNamespace: c.Namespace, v0.LabelOwner: string(other.UID),
	}
	strangers := []*unstructured.Unstructured{
		c.create("v1", "ConfigMap", c.Namespace, "stranger", nil),
		c.create("v1", "ConfigMap", far, "stranger", nil),
		c.create("v1", "ConfigMap", c.Namespace, "labeled", ours),
		c.create("v1", "ConfigMap", far, "labeled", ours),
		victims,
	}
	// An object that no longer has its owner may have been orphaned on purpose.
	orphan := c.create("v1", "ConfigMap", c.Namespace, "orphaned", ours)
	strangers = append(strangers, orphan)

	patch := statusWith(strangers...)
	if err := c.Status().Patch(t.Context(), other, patch); err != nil {
		t.Fatal(err)
	}
	cfg := configuration("empty")
	cfg.Namespace = c.Namespace
	if err := c.Status().Patch(t.Context(), cfg, patch); err != nil {
		t.Fatal(err)
	}
	c.runWith(options)
	c.Eventually("the poisoned inventory is cleared", func() string {
		c.Read("empty-1", other)
		if n := len(other.Status.Resources); n > 0 {
			return fmt.Sprintf("it has %d entries", n)
		}
		return ""
	})
	for _, object := range strangers {
		c.unchanged(object)
	}

	// The same while the Instance is being deleted: its finalizer comes off.
	finalizer := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["`+v0.FinalizerCleanup+`","test/wait"]}}`))
	if err := c.Patch(t.Context(), other, finalizer, client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
	c.delete(other)
	if err := c.Status().Patch(t.Context(), other, patch); err != nil {
		t.Fatal(err)
	}
	c.finalized("empty-1", other, false)
	for _, object := range strangers {
		c.unchanged(object)
	}
	last := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	if err := c.Patch(t.Context(), other, last); err != nil {
		t.Fatal(err)
	}
}

// Another client that applies under the controller's field manager is reverted.
func TestAnotherClientWithOurFieldManager(t *testing.T) {
	c := newCluster(t)
	c.Apply(configWith("cfg", `
  - apiVersion: v1
    kind: Service
    metadata: {name: service}
    spec: {ports: [{port: 80}], selector: {a: b}}`))
	instance := c.Instance("cfg", "cfg-1", nil)
	c.condition(instance, v0.ConditionApplied, metav1.ConditionTrue, v0.ReasonApplied)
	before := c.exists("v1", "Service", "service")
	for name, edit := range map[string]foreignEdit{
		"apply": patch(types.ApplyPatchType, `
apiVersion: v1
kind: Service
metadata: {name: service, labels: {`+v0.LabelManagedBy+`: `+v0.ManagedBy+`, `+v0.LabelInstance+`: cfg-1}}
spec: {ports: [{port: 81}], selector: {c: d}}`),
		"update": update("spec.ports.0.port", 81),
	} {
		t.Run(name, func(t *testing.T) {
			c := c.in(t)
			c.edit("v1 Service service", edit.by(v0.FieldManagerController))
			c.Eventually("repair", func() string { return differences(before, c.read("v1 Service service")) })
			if owner := metav1.GetControllerOf(c.read("v1 Service service")); owner == nil || owner.UID != instance.UID {
				t.Errorf("its owner is %v", owner)
			}
		})
	}
}

// A client that applies the same fields as the controller, under its name, leaves the
// same managed fields, except for their time in seconds. It is reverted.
func TestAnotherClientAppliesTheSameFields(t *testing.T) {
	c := newCluster(t)
	c.Apply(configWith("cfg", `
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: data, labels: {app: mine}}
    data: {key: value}
  - apiVersion: v1
    kind: Service
    metadata: {name: service}
    spec: {ports: [{port: 80}], selector: {a: b}}`))
	instance := c.Instance("cfg", "cfg-1", nil)
	c.condition(instance, v0.ConditionApplied, metav1.ConditionTrue, v0.ReasonApplied)
	for _, forged := range []struct {
		object string
		field  []string
	}{
		{"v1 ConfigMap data", []string{"data", "key"}},
		{"v1 ConfigMap data", []string{"metadata", "labels", "app"}},
		{"v1 Service service", []string{"spec", "selector", "a"}},
	} {
		object := c.read(forged.object)
		before, _, _ := unstructured.NestedString(object.Object, forged.field...)
		for _, field := range []string{"managedFields", "resourceVersion", "creationTimestamp"} {
			unstructured.RemoveNestedField(object.Object, "metadata", field)
		}
		if err := unstructured.SetNestedField(object.Object, "forged", forged.field...); err != nil {
			t.Fatal(err)
		}
		body, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // in the second of the controller's apply, the managed fields would be the same
		c.edit(forged.object, patch(types.ApplyPatchType, string(body)).by(v0.FieldManagerController))
		c.Eventually("repair of "+forged.object, func() string {
			if now, _, _ := unstructured.NestedString(c.read(forged.object).Object, forged.field...); now != before {
				return fmt.Sprintf("%v is %q, want %q", forged.field, now, before)
			}
			return ""
		})
	}
}

// What other clients write next to the controller's fields, also into maps that a template
// leaves empty, costs no write.
func TestOtherFieldsCostNoWrite(t *testing.T) {
	c := newCluster(t)
	c.Apply(configWith("cfg", `
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: data, annotations: {}}
    data: {}
  - apiVersion: v1
    kind: Service
    metadata: {name: service}
    spec: {ports: [{port: 80, name: a}], selector: {a: b}}`))
	instance := c.Instance("cfg", "cfg-1", nil)
	c.ready(instance)
	var before int64
	for round := range 5 {
		if round <= 1 { // who fills an empty map first takes it over, which is repaired once
			before = c.settled()
		}
		c.edit("v1 ConfigMap data", patch(types.MergePatchType,
			fmt.Sprintf(`{"metadata":{"annotations":{"x":"%[1]d"},"labels":{"y":"%[1]d"}},"data":{"z":"%[1]d"}}`, round)))
		c.edit("v1 Service service", patch(types.StrategicMergePatchType,
			fmt.Sprintf(`{"spec":{"ports":[{"port":81,"name":"b","targetPort":%d}],"sessionAffinity":"ClientIP"}}`, 81+round)))
	}
	if after := c.settled(); after != before {
		t.Errorf("%d writes", after-before)
	}
}

// A finalizer of the controller's name that another client has set comes off.
func TestForeignFinalizerComesOff(t *testing.T) {
	c := newCluster(t)
	c.Apply(config)
	instance := c.Instance("cfg", "cfg-1", map[string]string{"TEXT": "foo"})
	c.ready(instance)
	cfg := configuration("cfg")
	cfg.Namespace = c.Namespace
	for _, parent := range []client.Object{instance, cfg} {
		finalizer := []byte(`{"metadata":{"finalizers":["test/first","` + v0.FinalizerCleanup + `"]}}`)
		if err := c.Patch(t.Context(), parent, client.RawPatch(types.MergePatchType, finalizer), client.FieldOwner("somebody")); err != nil {
			t.Fatal(err)
		}
		c.delete(parent)
		c.finalized(parent.GetName(), parent, false)
		if finalizers := strings.Join(parent.GetFinalizers(), " "); finalizers != "test/first" {
			t.Errorf("the finalizers are %q", finalizers)
		}
		c.patch(parent, `{"metadata":{"finalizers":null}}`)
	}
}

// A deletion that the API server refuses is reported, and stops no other.
func TestRefusedDeletionStopsNoOther(t *testing.T) {
	c := newCluster(t)
	configMap := func(name string) string {
		return `
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: ` + name + `}`
	}
	c.Apply(configWith("cfg", configMap("a-protected")+configMap("b")+configMap("c")))
	instance := c.Instance("cfg", "cfg-1", nil)
	c.ready(instance)
	c.Apply(strings.ReplaceAll(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NAME}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAME}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [DELETE], resources: [configmaps], resourceNames: [a-protected]}]
  failurePolicy: Fail
  validations: [{expression: "false", message: it is protected}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: NAME}
spec: {policyName: NAME, validationActions: [Deny]}
`, "NAME", c.Namespace))
	t.Cleanup(func() {
		for _, kind := range []string{"ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"} {
			_ = c.Delete(context.WithoutCancel(t.Context()), named("admissionregistration.k8s.io/v1", kind, "", c.Namespace))
		}
	})
	c.Eventually("the policy", func() string {
		if err := c.Delete(t.Context(), named("v1", "ConfigMap", c.Namespace, "a-protected"), client.DryRunAll); err == nil {
			return "it does not act yet"
		}
		return ""
	})
	c.Apply(configWith("cfg", " []"))
	c.gone("v1", "ConfigMap", "b")
	c.gone("v1", "ConfigMap", "c")
	c.condition(instance, v0.ConditionApplied, metav1.ConditionFalse, v0.ReasonPolicyDenied,
		"a-protected cannot be deleted", "it is protected")
}

// The objects of a device that was plugged in again wait for those of the former
// one, which garbage collection removes.
func TestFormerObjectsAreWaitedFor(t *testing.T) {
	c := newCluster(t)
	c.Apply(configWith("cfg", `
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: "{{INSTANCE_NAME}}", finalizers: [test/slow]}
  - apiVersion: v1
    kind: Service
    metadata: {name: "{{INSTANCE_NAME}}"}
    spec: {ports: [{port: 80}]}`))
	former := c.Instance("cfg", "cfg-1", nil)
	c.ready(former)
	service, slow := c.exists("v1", "Service", "cfg-1"), c.exists("v1", "ConfigMap", "cfg-1")
	c.stop() // no controller sees the Instance go
	c.delete(former)
	c.removed(former)
	if err := c.Delete(t.Context(), slow); err != nil { // as garbage collection does, which this test lacks
		t.Fatal(err)
	}
	instance := c.Instance("cfg", "cfg-1", nil)
	c.run()
	// Neither the object that is being deleted nor the one that soon will be is a conflict.
	c.condition(instance, v0.ConditionReady, metav1.ConditionFalse, v0.ReasonProgressing,
		"waiting for the former ConfigMap to be deleted", "waiting for the former Service to be deleted")
	c.condition(instance, v0.ConditionApplied, metav1.ConditionTrue, v0.ReasonApplied)
	c.delete(service)
	c.patch(slow, `{"metadata":{"finalizers":null}}`)
	c.ready(instance)
}
