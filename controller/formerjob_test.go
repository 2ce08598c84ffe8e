package controller_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
)

const jobConfiguration = `
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: cfg}
spec:
  discoveryHandler: {name: debugEcho}
  brokerSpec: {brokerJobSpec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: %s}]}}}}`

// formerJob creates a Job as the original Akri does.
func (c *cluster) formerJob(instance *v0.Instance) {
	c.T.Helper()
	c.Apply(fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata:
  name: %[1]s-7-job
  labels: {akri.sh/configuration: cfg, akri.sh/instance: %[1]s, app: %[1]s-7-job, controller: akri.sh}
  ownerReferences: [{apiVersion: akri.sh/v0, kind: Instance, name: %[1]s, uid: %[2]s, controller: true, blockOwnerDeletion: true}]
spec:
  template:
    metadata: {labels: {akri.sh/configuration: cfg, akri.sh/instance: %[1]s}}
    spec: {restartPolicy: Never, containers: [{name: c, image: a}]}`, instance.Name, instance.UID))
}

func (c *cluster) jobs() []string {
	c.T.Helper()
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "JobList"})
	if err := c.List(c.T.Context(), &list, client.InNamespace(c.Namespace)); err != nil {
		c.T.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].GetName())
	}
	return names
}

// A Job that the original Akri has run is not run again. When its specification changes,
// the next one runs, and only one.
func TestJobsOfAkriAreNotRunAgain(t *testing.T) {
	c := newCluster(t)
	c.stop()
	c.Apply(fmt.Sprintf(jobConfiguration, "a"))
	instance := c.Instance("cfg", "cfg-1", nil)
	c.formerJob(instance)
	c.Instance("cfg", "cfg-2", nil) // its Job has not been created yet
	c.run()
	c.ready(&v0.Instance{ObjectMeta: metav1.ObjectMeta{Name: "cfg-1"}})
	c.Eventually("the Job of the other Instance", func() string {
		if jobs := c.jobs(); len(jobs) != 2 {
			return fmt.Sprint(jobs)
		}
		return ""
	})
	before := c.jobs()
	c.stop()
	c.run() // the status remembers it
	c.Apply(fmt.Sprintf(jobConfiguration, "b"))
	c.Eventually("a Job of the new specification for each Instance", func() string {
		added := 0
		for _, name := range c.jobs() {
			if name != before[0] && name != before[1] {
				added++
			}
		}
		if added != 2 {
			return fmt.Sprintf("there were %v, and now %v", before, c.jobs())
		}
		return ""
	})
}
