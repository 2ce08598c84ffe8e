package controller_test

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller"
	"akri.sh/akri/controller/confine"
)

// A kind that is defined again with another scope leaves nothing behind: the
// objects of the former scope went with their definition.
func TestKindThatChangesItsScope(t *testing.T) {
	options := controller.Options{Workers: 4, Policy: confine.Policy{ClusterScoped: true}}
	c := newClusterWith(t, options)
	define := func(scope string) {
		c.Apply(strings.ReplaceAll(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shifts.scope.akri.sh}
spec:
  group: scope.akri.sh
  scope: SCOPE
  names: {kind: Shift, listKind: ShiftList, plural: shifts, singular: shift}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
`, "SCOPE", scope))
	}
	undefine := func() {
		definition := named("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "shifts.scope.akri.sh")
		if err := c.Delete(context.WithoutCancel(t.Context()), definition); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	}
	t.Cleanup(undefine)
	define("Cluster")
	shift := `
  - apiVersion: scope.akri.sh/v1
    kind: Shift
    metadata: {name: "shift-` + c.Namespace + `"}
    spec: {a: b}`
	c.Apply(configWith("cfg", shift))
	instance := c.Instance("cfg", "cfg-1", nil)
	c.condition(instance, v0.ConditionReady, metav1.ConditionTrue, v0.ReasonReady)
	c.finalized("cfg-1", instance, true)

	c.stop()
	undefine()
	c.Eventually("the definition is deleted", func() string {
		if c.found(named("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "shifts.scope.akri.sh")) {
			return "it exists"
		}
		return ""
	})
	define("Namespaced")
	c.runWith(options)
	c.Eventually("an object of the new scope", func() string {
		var list unstructured.UnstructuredList
		list.SetAPIVersion("scope.akri.sh/v1")
		list.SetKind("ShiftList")
		if err := c.List(t.Context(), &list, client.InNamespace(c.Namespace)); err != nil {
			return err.Error()
		}
		if len(list.Items) != 1 {
			return "there is none"
		}
		return ""
	})
	c.condition(instance, v0.ConditionReady, metav1.ConditionTrue, v0.ReasonReady)
	c.finalized("cfg-1", instance, false)
	if n := len(instance.Status.Resources); n != 1 || instance.Status.Resources[0].Namespace != c.Namespace {
		t.Errorf("the inventory is %+v", instance.Status.Resources)
	}
}
