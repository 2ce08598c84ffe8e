package controller_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"akri.sh/akri/controller"
	"akri.sh/akri/controller/confine"
)

// A kind that is defined again with another scope leaves nothing behind: the
// objects of the former scope went with their definition.
func TestKindThatChangesItsScope(t *testing.T) {
	options := controller.Options{Workers: 4, Policy: confine.Policy{ClusterScoped: true}}
	c := newClusterWith(t, options)
	c.install("twins", "Cluster")
	twin := `
  - apiVersion: test.akri.sh/v1
    kind: Twin
    metadata: {name: "twin-` + c.Namespace + `"}
    spec: {a: b}`
	c.Apply(configWith("cfg", twin))
	instance := c.Instance("cfg", "cfg-1", nil)
	c.ready(instance)
	c.finalized("cfg-1", instance, true)

	c.stop()
	c.uninstall("twins")
	c.install("twins", "Namespaced")
	c.runWith(options)
	c.Eventually("an object of the new scope", func() string {
		var list unstructured.UnstructuredList
		list.SetAPIVersion("test.akri.sh/v1")
		list.SetKind("TwinList")
		if err := c.List(t.Context(), &list, client.InNamespace(c.Namespace)); err != nil {
			return err.Error()
		}
		if len(list.Items) != 1 {
			return "there is none"
		}
		return ""
	})
	c.ready(instance)
	c.finalized("cfg-1", instance, false)
	if n := len(instance.Status.Resources); n != 1 || instance.Status.Resources[0].Namespace != c.Namespace {
		t.Errorf("the inventory is %+v", instance.Status.Resources)
	}
}
