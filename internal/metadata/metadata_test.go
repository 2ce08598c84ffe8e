package metadata

import (
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
)

func TestOfInstance(t *testing.T) {
	now := metav1.NewTime(time.Unix(1, 0))
	identity := metav1.ObjectMeta{
		Namespace: "ns", Name: "cam-1", UID: "u", Generation: 2, ResourceVersion: "3", CreationTimestamp: now, DeletionTimestamp: &now,
	}
	whole, want := identity, identity
	whole.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
	whole.Labels = map[string]string{v0.LabelConfiguration: "cam", v0.NodeLabel("a"): "", "mine": "1", v0.LabelDiscoverUntil: "7"}
	want.Labels = map[string]string{v0.LabelConfiguration: "cam", v0.NodeLabel("a"): ""}
	whole.Annotations = map[string]string{v0.AnnotationDeviceID: "usb", v0.AnnotationServiceAccount: "sa", "mine": "1"}
	want.Annotations = map[string]string{v0.AnnotationDeviceID: "usb", v0.AnnotationServiceAccount: "sa"}
	whole.Finalizers = []string{
		"example.com/x", "node-b", "node-a", metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents, v0.FinalizerCleanup,
	}
	want.Finalizers = []string{v0.FinalizerCleanup, metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents, "node-b"}
	whole.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: "mine", UID: "u-1"},
		{APIVersion: "akri.sh/v0", Kind: "Configuration", Name: "cam", UID: "u-2", Controller: new(true), BlockOwnerDeletion: new(true)},
	}
	want.OwnerReferences = []metav1.OwnerReference{{Kind: "ConfigMap", UID: "u-1"}, {Kind: "Configuration", UID: "u-2", Controller: new(true)}}
	if got := OfInstance(&whole); !reflect.DeepEqual(got, want) {
		t.Errorf("of an Instance: got\n%+v, want\n%+v", got, want)
	}
	identity.Labels, identity.Finalizers = map[string]string{v0.LabelDiscoverUntil: "7"}, want.Finalizers
	if got := OfConfiguration(&whole); !reflect.DeepEqual(got, identity) {
		t.Errorf("of a Configuration: got\n%+v, want\n%+v", got, identity)
	}
	if got := OfInstance(&metav1.ObjectMeta{}); !reflect.DeepEqual(got, metav1.ObjectMeta{}) {
		t.Errorf("of nothing: got %+v", got)
	}
	// A patch that adds a label to an absent map would replace the labels of others.
	if got := OfInstance(&metav1.ObjectMeta{Labels: map[string]string{"mine": "1"}}); got.Labels == nil || len(got.Labels) > 0 {
		t.Errorf("of labels of others: got %#v, want a map without entries", got.Labels)
	}
}

// What is cut must not look like a valid value.
func TestLongValues(t *testing.T) {
	annotation := func(value string) string {
		return OfInstance(&metav1.ObjectMeta{Annotations: map[string]string{v0.AnnotationDeviceID: value}}).Annotations[v0.AnnotationDeviceID]
	}
	valid := strings.Repeat("x", maxValue)
	if got := annotation(valid); got != valid {
		t.Errorf("a valid value is cut to %d bytes", len(got))
	}
	if got := annotation(valid + "x"); len(got) > maxValue || strings.HasPrefix(valid, got) {
		t.Errorf("a long value is cut to %d bytes, want at most %d, which no device has as its ID", len(got), maxValue)
	}
	if got := UID("6a0d7d5e-6d4a-4f0c-9a35-6e7a5c3c3d52"); got != "6a0d7d5e-6d4a-4f0c-9a35-6e7a5c3c3d52" {
		t.Errorf("a UID becomes %q", got)
	}
	owners := OfInstance(&metav1.ObjectMeta{OwnerReferences: make([]metav1.OwnerReference, v0.MaxOwnerReferences+1)}).OwnerReferences
	if len(owners) != v0.MaxOwnerReferences {
		t.Errorf("%d owners are kept", len(owners))
	}
}
