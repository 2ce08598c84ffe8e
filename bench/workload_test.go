package main

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The bare client applies what the controller does: the objects of the Configuration,
// with the device's name and property, and with labels and an owner.
func TestBareObjects(t *testing.T) {
	instance := newInstance(deviceName(7))
	instance.SetUID("1-2-3")
	objects := bareObjects(instance)
	templates, _, err := unstructured.NestedSlice(newConfiguration().Object, "spec", "instanceBrokerResources")
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
		if !maps.Equal(o.GetLabels(), labels) || o.GetNamespace() != namespace {
			t.Errorf("%s: labels %v in the namespace %s", o.GetKind(), o.GetLabels(), o.GetNamespace())
		}
		for _, path := range [][]string{{"metadata", "labels"}, {"metadata", "ownerReferences"}, {"metadata", "namespace"}} {
			unstructured.RemoveNestedField(o.Object, path...)
		}
		for _, label := range []string{"akri.sh/configuration", "akri.sh/instance"} { // which the controller gives to Pods, too
			path := []string{"spec", "template", "metadata", "labels", label}
			if value, _, _ := unstructured.NestedString(o.Object, path...); o.GetKind() == "Deployment" && value != labels[label] {
				t.Errorf("the Pods' label %s is %q, want %q", label, value, labels[label])
			}
			unstructured.RemoveNestedField(o.Object, path...)
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
