package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func TestIsDevice(t *testing.T) {
	for name, want := range map[string]bool{
		deviceName(7): true, deviceName(999_999): true,
		"kube-root-ca.crt": false, "": false, deviceName(7) + "-5d4f9c": false, "other-000007": false,
	} {
		if isDevice(name) != want {
			t.Errorf("%q is a device: %t, want %t", name, !want, want)
		}
	}
}

// The bare client applies what the controller does: the objects of the Configuration,
// with the device's name and property, and with labels and an owner.
func TestBareObjects(t *testing.T) {
	instance := newInstance("bench-1", deviceName(7))
	instance.SetUID("1-2-3")
	objects := bareObjects(instance)
	templates, _, err := unstructured.NestedSlice(newConfiguration("bench-1").Object, "spec", "instanceBrokerResources")
	if err != nil || len(templates) != len(children) || len(objects) != len(children) {
		t.Fatalf("%d templates, %d objects, %v, want %d of each", len(templates), len(objects), err, len(children))
	}
	labels := map[string]string{
		"app.kubernetes.io/managed-by": "akri", "akri.sh/configuration": "bench", "akri.sh/instance": "bench-000007",
	}
	for i, o := range objects {
		if resource := strings.ToLower(o.GetKind()) + "s"; resource != children[i].Resource {
			t.Errorf("object %d is one of %s, want %s", i, resource, children[i].Resource)
		}
		owners := o.GetOwnerReferences()
		if len(owners) != 1 || owners[0].UID != "1-2-3" || owners[0].Name != deviceName(7) || owners[0].Controller == nil {
			t.Errorf("%s: owners %v", o.GetKind(), owners)
		}
		if !maps.Equal(o.GetLabels(), labels) || o.GetNamespace() != "bench-1" {
			t.Errorf("%s: labels %v in the namespace %s", o.GetKind(), o.GetLabels(), o.GetNamespace())
		}
		for _, path := range [][]string{{"metadata", "labels"}, {"metadata", "ownerReferences"}, {"metadata", "namespace"}} {
			unstructured.RemoveNestedField(o.Object, path...)
		}
		for _, label := range []string{"akri.sh/configuration", "akri.sh/instance"} { // which the controller gives to Pods, too
			unstructured.RemoveNestedField(o.Object, "spec", "template", "metadata", "labels", label)
		}
		rendered := strings.NewReplacer("{{INSTANCE_NAME}}", deviceName(7), "{{INSTANCE_PROPERTIES.DEVICE}}", "/dev/"+deviceName(7)).
			Replace(encode(t, templates[i]))
		if got := encode(t, o.Object); got != rendered {
			t.Errorf("got  %s\nwant %s", got, rendered)
		}
	}
}

func encode(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestBareInstanceStatus(t *testing.T) {
	instance := newInstance("bench-1", deviceName(7))
	instance.SetUID("1-2-3")
	applied := bareObjects(instance)
	for i, o := range applied {
		o.SetUID(types.UID(fmt.Sprint("uid-", i)))
	}
	status := bareInstanceStatus(instance, applied)
	entries, _, err := unstructured.NestedSlice(status.Object, "status", "resources")
	if err != nil || len(entries) != 3 || status.GetUID() != "1-2-3" || status.GetName() != deviceName(7) {
		t.Fatalf("got %d resources of %s, %v", len(entries), status.GetName(), err)
	}
	want := []string{"<nil> ConfigMap uid-0 true", "<nil> Service uid-1 true", "apps Deployment uid-2 false"}
	for i, entry := range entries {
		e := entry.(map[string]any)
		if got := fmt.Sprint(e["group"], " ", e["kind"], " ", e["uid"], " ", e["ready"]); got != want[i] {
			t.Errorf("resource %d: got %s, want %s", i, got, want[i])
		}
	}
}
