package controller_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
)

// List entries that clients have replaced while no controller ran are repaired after
// its start, also if the template was edited meanwhile. What they have added stays.
func TestListEntriesAfterRestart(t *testing.T) {
	c := newCluster(t)
	const double = `{ports: [{name: a, port: 80}, {name: b, port: 90}], selector: {a: b}}`
	templates := strings.Replace(repairTemplates, "spec: {ports: [{port: 80}], selector: {a: b}}",
		"spec: {ports: [{name: a, port: 80}, {name: b, port: 90}, {name: c, port: 100}], selector: {a: b}}", 1)
	c.Apply(templates)
	instance := c.Instance("cfg", "cfg-1", nil)
	c.condition(instance, v0.ConditionApplied, metav1.ConditionTrue, v0.ReasonApplied)
	c.condition(configuration("cfg"), v0.ConditionApplied, metav1.ConditionTrue, v0.ReasonApplied)
	c.settled()
	c.stop()

	const (
		single     = "v1 Service single"
		other      = "v1 Service double"
		deployment = "apps/v1 Deployment broker"
	)
	add := patch(types.JSONPatchType, `[{"op": "add", "path": "/spec/ports/-", "value": {"name": "theirs", "port": 443}}]`)
	c.edit(single, add)
	c.edit(other, update("spec.ports.0.port", 81))
	c.edit(deployment, update(mainEnv+".0.name", "RENAMED"))
	// The template loses one of the entries that are left.
	c.Apply(strings.Replace(templates, double, `{ports: [{name: a, port: 80}], selector: {a: b}}`, 1))

	c.run()
	c.condition(configuration("cfg"), v0.ConditionApplied, metav1.ConditionTrue, v0.ReasonApplied)
	for object, want := range map[string]string{single: "80 90 100 443", other: "80"} {
		c.Eventually("the ports of "+object, func() string {
			if got := portsOf(c.read(object)); got != want {
				return "they are " + got + ", want " + want
			}
			return ""
		})
	}
	c.Eventually("the variables", func() string {
		if got := namesIn(c.read(deployment), mainEnv); !slices.Equal(got, []string{"A", "B"}) {
			return "they are " + strings.Join(got, " ")
		}
		return ""
	})
}

// racks is a kind with two versions of the same schema.
const racks = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: racks.versions.akri.sh}
spec:
  group: versions.akri.sh
  scope: Namespaced
  names: {kind: Rack, listKind: RackList, plural: racks, singular: rack}
  versions:
  - name: v1alpha1
    served: true
    storage: false
    schema: &schema
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              units:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [row, column]
                items:
                  type: object
                  required: [row, column]
                  properties: {row: {type: integer}, column: {type: integer}, label: {type: string}}
  - {name: v1, served: true, storage: true, schema: *schema}
`

// Lists of custom resources have keys, too, if their schema says so. A client may edit an object
// in another version of its kind than that of the template: kubectl edit uses the one that the API
// server prefers.
func TestListsOfCustomResources(t *testing.T) {
	c := newCluster(t)
	c.Apply(racks)
	definition := named("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "racks.versions.akri.sh")
	t.Cleanup(func() { _ = c.Delete(context.WithoutCancel(t.Context()), definition) })
	c.Apply(configWith("cfg", `
  - apiVersion: versions.akri.sh/v1alpha1
    kind: Rack
    metadata: {name: rack}
    spec:
      tags: [a, b]
      units: [{row: 1, column: 1, label: left}, {row: 1, column: 2, label: right}]`))
	instance := c.Instance("cfg", "cfg-1", nil)
	c.condition(instance, v0.ConditionApplied, metav1.ConditionTrue, v0.ReasonApplied)
	const rack = "versions.akri.sh/v1 Rack rack"
	for name, edit := range map[string]foreignEdit{
		"a set":            update("spec.tags.0", "z"),
		"all of a set":     update("spec.tags", []any{"y", "z"}),
		"one part of keys": update("spec.units.1.column", 3),
		"all entries":      update("spec.units", []any{map[string]any{"row": int64(5), "column": int64(5)}}),
		"an empty list":    update("spec.units", []any{}),
		"a value":          update("spec.units.0.label", "renamed"),
	} {
		t.Run(name, func(t *testing.T) {
			c := c.in(t)
			before := c.read(rack)
			c.edit(rack, edit)
			c.Eventually("repair", func() string { return differences(before, c.read(rack)) })
		})
	}
	t.Run("an addition stays", func(t *testing.T) {
		c := c.in(t)
		writes := c.settled()
		c.edit(rack, update("spec.tags", []any{"a", "b", "theirs"}).by("mesh"))
		if after := c.settled(); after != writes {
			t.Errorf("%d writes because of it", after-writes)
		}
		before := c.read(rack)
		c.edit(rack, update("spec.units.1.column", 3))
		c.Eventually("repair", func() string { return differences(before, c.read(rack)) })
	})
}
