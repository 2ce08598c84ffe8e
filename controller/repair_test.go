package controller_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v0 "akri.sh/akri/api/v0"
)

// repairTemplates renders a Service, and a Deployment with every kind of keyed list.
var repairTemplates = configWith("cfg", `
  - apiVersion: v1
    kind: Service
    metadata: {name: single}
    spec: {ports: [{port: 80}], selector: {a: b}}
  - apiVersion: v1
    kind: Service
    metadata: {name: double}
    spec: {ports: [{name: a, port: 80}, {name: b, port: 90}], selector: {a: b}}
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {name: broker}
    spec:
      selector: {matchLabels: {app: broker}}
      template:
        metadata: {labels: {app: broker}}
        spec:
          initContainers: [{name: init, image: init}]
          containers:
          - name: main
            image: main
            env: [{name: A, value: "1"}, {name: B, value: "2"}]
            ports: [{containerPort: 80}]
            volumeMounts: [{name: data, mountPath: /data}]
          - {name: other, image: other}
          volumes: [{name: data, emptyDir: {}}]
          imagePullSecrets: [{name: pull}]`)

const (
	containers = "spec.template.spec.containers"
	mainEnv    = "spec.template.spec.containers.0.env"
)

// An edit that changes the key of a list entry is reverted like any other.
func TestKeyedListEntriesAreRepaired(t *testing.T) {
	c := newCluster(t)
	c.Apply(repairTemplates)
	instance := c.Instance("cfg", "cfg-1", nil)
	c.condition(instance, v0.ConditionApplied, metav1.ConditionTrue, v0.ReasonApplied)
	c.condition(configuration("cfg"), v0.ConditionApplied, metav1.ConditionTrue, v0.ReasonApplied)

	recorded := func() (digests []string) {
		c.Read("cfg-1", instance)
		for _, resource := range instance.Status.Resources {
			digests = append(digests, resource.Name+" "+resource.ManagedFieldsHash)
		}
		return digests
	}
	applied := recorded()
	time.Sleep(time.Second) // the times of managed fields are whole seconds: a repair in the same one would leave the same record

	const (
		service    = "v1 Service single"
		double     = "v1 Service double"
		deployment = "apps/v1 Deployment broker"
	)
	for _, test := range []struct {
		name   string
		object string
		edits  []foreignEdit
	}{
		{"the only port of a Service", service, []foreignEdit{update("spec.ports.0.port", 81)}},
		{"the protocol of a port, which its key defaults", service, []foreignEdit{update("spec.ports.0.protocol", "UDP")}},
		{"a port, by a JSON Patch", service, []foreignEdit{patch(types.JSONPatchType,
			`[{"op": "replace", "path": "/spec/ports/0/port", "value": 82}]`)}},
		{"one of two ports", double, []foreignEdit{update("spec.ports.1.port", 91)}},
		{"both ports at once", double, []foreignEdit{update("spec.ports", []any{
			map[string]any{"name": "x", "port": int64(81)}, map[string]any{"name": "y", "port": int64(91)}})}},
		{"both ports, by two clients", double, []foreignEdit{
			update("spec.ports.0.port", 81), update("spec.ports.1.port", 91).by("kubectl-patch")}},
		{"a container", deployment, []foreignEdit{update(containers+".0.name", "renamed")}},
		{"an init container", deployment, []foreignEdit{update("spec.template.spec.initContainers.0.name", "renamed")}},
		{"a container's variable", deployment, []foreignEdit{update(mainEnv+".0.name", "RENAMED")}},
		{"a container's port", deployment, []foreignEdit{update(containers+".0.ports.0.containerPort", 81)}},
		{"where a volume is mounted", deployment, []foreignEdit{update(containers+".0.volumeMounts.0.mountPath", "/elsewhere")}},
		{"a volume with its mount", deployment, []foreignEdit{patch(types.JSONPatchType, `[
			{"op": "replace", "path": "/spec/template/spec/volumes/0/name", "value": "renamed"},
			{"op": "replace", "path": "/spec/template/spec/containers/0/volumeMounts/0/name", "value": "renamed"}]`)}},
		{"an image pull secret", deployment, []foreignEdit{update("spec.template.spec.imagePullSecrets.0.name", "renamed")}},
		{"a variable, then another", deployment, []foreignEdit{update(mainEnv+".0.name", "X"), update(mainEnv+".1.name", "Y")}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := c.in(t)
			before := c.read(test.object)
			for _, edit := range test.edits {
				c.edit(test.object, edit)
			}
			c.Eventually("repair", func() string { return differences(before, c.read(test.object)) })
		})
	}
	c.settled()
	for _, object := range []string{service, double, deployment} {
		for _, entry := range c.read(object).GetManagedFields() {
			if entry.Subresource == "" && (entry.Manager != v0.FieldManagerController || entry.Operation != metav1.ManagedFieldsOperationApply) {
				t.Errorf("%s has fields of %s (%s): %s", object, entry.Manager, entry.Operation, entry.FieldsV1.GetRawString())
			}
		}
	}
	// The repairs are recorded within ten seconds. After a restart, nothing is repaired again.
	c.Eventually("the record of the repairs", func() string {
		for _, resource := range recorded() {
			if slices.Contains(applied, resource) {
				return resource + " is recorded as it was applied first"
			}
		}
		return ""
	})
	writes := c.settled()
	c.stop()
	c.run()
	if after := c.settled(); after != writes {
		t.Errorf("%d writes after a restart", after-writes)
	}
}

// foreignEdit is a change of an object by another client.
type foreignEdit struct {
	manager string
	field   string // dotted; the value is set by an update of the whole object
	value   any
	kind    types.PatchType
	body    string
}

func update(field string, value any) foreignEdit {
	if number, ok := value.(int); ok {
		value = int64(number)
	}
	return foreignEdit{manager: "kubectl-edit", field: field, value: value}
}

func patch(kind types.PatchType, body string) foreignEdit {
	return foreignEdit{manager: "kubectl-patch", kind: kind, body: body}
}

func (e foreignEdit) by(manager string) foreignEdit {
	e.manager = manager
	return e
}

// read returns an object that is given as "apiVersion kind name".
func (c *cluster) read(object string) *unstructured.Unstructured {
	c.T.Helper()
	words := strings.Fields(object)
	found := c.object(words[0], words[1], words[2])
	if found == nil {
		c.T.Fatalf("%s does not exist", object)
	}
	return found
}

// edit changes an object, again if the controller has written it in between.
func (c *cluster) edit(name string, edit foreignEdit) {
	c.T.Helper()
	c.Eventually("an edit of "+name, func() string {
		object := c.read(name)
		var err error
		if edit.kind != "" {
			body := []byte(edit.body)
			if edit.kind == types.ApplyPatchType {
				body, _ = yaml.YAMLToJSON(body)
			}
			err = c.Patch(c.T.Context(), object, client.RawPatch(edit.kind, body), client.FieldOwner(edit.manager))
		} else {
			setField(c.T, object.Object, strings.Split(edit.field, "."), edit.value)
			err = c.Update(c.T.Context(), object, client.FieldOwner(edit.manager))
		}
		if err != nil {
			return err.Error()
		}
		return ""
	})
}

// setField sets a field; numbers in its path are indices.
func setField(t testing.TB, object any, path []string, value any) {
	t.Helper()
	for i, name := range path {
		last := i == len(path)-1
		switch node := object.(type) {
		case map[string]any:
			if last {
				node[name] = value
			}
			object = node[name]
		case []any:
			var index int
			if _, err := fmt.Sscan(name, &index); err != nil {
				t.Fatal(err)
			}
			if last {
				node[index] = value
			}
			object = node[index]
		default:
			t.Fatalf("there is no %s in %v", name, object)
		}
	}
}

// differences compares the specs of two objects.
func differences(want, got *unstructured.Unstructured) string {
	expected, _ := yaml.Marshal(want.Object["spec"])
	found, _ := yaml.Marshal(got.Object["spec"])
	if string(expected) != string(found) {
		return fmt.Sprintf("got\n%s\nwant\n%s", found, expected)
	}
	return ""
}
