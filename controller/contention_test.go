package controller_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/converge"
	"akri.sh/akri/internal/fulltest"
)

// Another client changes a field back as fast as it is repaired.
func TestContention(t *testing.T) {
	fulltest.Only(t)
	c := newCluster(t)
	seen := c.intercept()
	c.Apply(configWith("cfg", `
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: "{{INSTANCE_NAME}}"}
    data: {k: ours, other: o}`))
	instance := c.Instance("cfg", "cfg-1", nil)
	object := c.exists("v1", "ConfigMap", "cfg-1")
	value := func() any {
		return c.object("v1", "ConfigMap", "cfg-1").Object["data"].(map[string]any)["k"]
	}
	theirs := client.RawPatch(types.MergePatchType, []byte(`{"data":{"k":"theirs"}}`))
	changeBack := func() {
		if err := c.Patch(t.Context(), object, theirs, client.FieldOwner("other-controller")); err != nil {
			t.Fatal(err)
		}
	}
	repairs := func(n int) {
		for range n {
			changeBack()
			c.Eventually("a repair", func() string {
				if value() != "ours" {
					return "it is not repaired"
				}
				return ""
			})
		}
	}
	repairs(2 * converge.MinRepairs)
	c.settled()
	reports := seen.status.Load()
	repairs(converge.Burst - 2*converge.MinRepairs)
	c.settled()
	if more := seen.status.Load() - reports; more > 4 { // one in ten seconds, for the digests
		t.Errorf("%d further reports of the same contention", more)
	}
	c.condition(
		instance,
		v0.ConditionApplied,
		metav1.ConditionFalse,
		v0.ReasonContended,
		"ConfigMap",
		"other-controller (data.k)",
		"leave the fields that it changes out",
	)
	c.noticed("Instance", "cfg-1", v0.ReasonContended)

	// Repairs are rate-limited: further changes stay for a while.
	changeBack()
	c.settled()
	if value() != "theirs" {
		t.Errorf("repaired at once, after %d repairs", converge.Burst)
	}
	c.condition(instance, v0.ConditionApplied, metav1.ConditionFalse, v0.ReasonContended)
}

// A client that keeps changing the key of a list entry is named, too.
func TestContentionAboutListEntries(t *testing.T) {
	c := newCluster(t)
	c.Apply(configWith("cfg", `
  - apiVersion: v1
    kind: Service
    metadata: {name: service}
    spec: {ports: [{port: 80}], selector: {a: b}}`))
	instance := c.Instance("cfg", "cfg-1", nil)
	before := c.exists("v1", "Service", "service")
	for range 12 {
		c.edit("v1 Service service", update("spec.ports.0.port", 81))
		c.Eventually("a repair", func() string { return differences(before, c.read("v1 Service service")) })
	}
	c.condition(instance, v0.ConditionApplied, metav1.ConditionFalse, v0.ReasonContended, "kubectl-edit (spec.ports[port=81")
}

// A Job that Kubernetes deletes, because it has finished, runs again and again: the message says
// how to run it once.
func TestContentionAboutJobsThatEnd(t *testing.T) {
	c := newCluster(t)
	c.Apply(configWith("cfg", `
  - apiVersion: batch/v1
    kind: Job
    metadata: {name: job}
    spec:
      ttlSecondsAfterFinished: 1
      template: {spec: {restartPolicy: Never, containers: [{name: c, image: c}]}}`))
	instance := c.Instance("cfg", "cfg-1", nil)
	for range converge.MinRepairs {
		job := c.exists("batch/v1", "Job", "job")
		c.delete(job, client.PropagationPolicy(metav1.DeletePropagationBackground))
		c.replaced(job)
	}
	c.condition(instance, v0.ConditionApplied, metav1.ConditionFalse, v0.ReasonContended, "spec.ttlSecondsAfterFinished",
		`annotate its template akri.sh/once: "true"`)
}

// noticed waits for an Event about an object.
func (c *cluster) noticed(kind, name, reason string) {
	c.T.Helper()
	c.Eventually("Event "+reason+" about "+kind+" "+name, func() string {
		var events unstructured.UnstructuredList
		events.SetAPIVersion("events.k8s.io/v1")
		events.SetKind("EventList")
		if err := c.List(c.T.Context(), &events, client.InNamespace(c.Namespace)); err != nil {
			c.T.Fatal(err)
		}
		for _, event := range events.Items {
			regarding, _, _ := unstructured.NestedStringMap(event.Object, "regarding")
			if event.Object["reason"] == reason && regarding["kind"] == kind && regarding["name"] == name {
				return ""
			}
		}
		return "there is none"
	})
}
