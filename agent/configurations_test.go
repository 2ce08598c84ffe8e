package agent

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	v0 "akri.sh/akri/api/v0"
)

// Each agent holds all Configurations: of each, it keeps what it reads and nothing
// else.
func TestConfigurationsAreReduced(t *testing.T) {
	now := metav1.Unix(1_700_000_000, 0)
	full := &v0.Configuration{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "cams", UID: "uid", Generation: 3, ResourceVersion: "7", CreationTimestamp: now, DeletionTimestamp: &now,
			Labels: map[string]string{"big": "x"}, Annotations: map[string]string{"big": "x"}, Finalizers: []string{"big"},
			OwnerReferences: []metav1.OwnerReference{{Name: "big"}}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "big"}},
		},
		Spec: v0.ConfigurationSpec{
			DiscoveryHandler: v0.DiscoveryHandler{Name: "h", DiscoveryDetails: "details",
				DiscoveryProperties: []v0.DiscoveryProperty{{Name: "P"}}},
			Capacity:         2,
			BrokerProperties: map[string]string{"K": "v"},
		},
		Status: v0.ConfigurationStatus{DiscoveryFailures: []v0.DiscoveryFailure{
			{Node: "here", Handler: "h", Message: "ours"}, {Node: "there", Handler: "h", Message: "big"},
			{Node: "elsewhere", Handler: "h", Message: v0.MessageHandlerMissing},
		}, Instances: 3},
	}
	want := full.DeepCopy()
	want.ObjectMeta = metav1.ObjectMeta{Namespace: "ns", Name: "cams", UID: "uid", Generation: 3, ResourceVersion: "7",
		CreationTimestamp: now, DeletionTimestamp: &now}
	want.Status.DiscoveryFailures, want.Status.Instances = want.Status.DiscoveryFailures[:1], 0

	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(full)
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: content}
	spec := object.Object["spec"].(map[string]any)
	for field := range fieldsOf(v0.ConfigurationSpec{}) {
		if _, found := spec[field]; !found { // whatever it is, it is not kept
			spec[field] = map[string]any{"big": strings.Repeat("x", 10_000)}
		}
	}
	for _, served := range []bool{true, false} {
		got, err := reader{node: "here", served: func(string) bool { return served }}.configuration(object.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		got.CreationTimestamp, got.DeletionTimestamp = now, &now // the same time in another zone
		if !served {
			want.Spec.DiscoveryHandler.DiscoveryDetails, want.Spec.DiscoveryHandler.DiscoveryProperties = "", nil
		}
		if !reflect.DeepEqual(&got.Configuration, want) || got.otherFailures != 2 || got.otherMissing != 1 || !got.discovered ||
			got.withoutRequest == served || got.request.bytes != len("details") {
			t.Errorf("kept:\n%+v\nwant:\n%+v", got, want)
		}
	}
}

// fieldsOf returns the JSON names of a struct's fields.
func fieldsOf(value any) map[string]bool {
	names := map[string]bool{}
	for _, field := range reflect.VisibleFields(reflect.TypeOf(value)) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !slices.Contains([]string{"", "-"}, name) {
			names[name] = true
		}
	}
	return names
}

// A node whose failures did not fit looks again when there is room.
func TestRoomForFailuresMatters(t *testing.T) {
	full, room := &cachedConfiguration{otherFailures: v0.MaxDiscoveryFailures}, &cachedConfiguration{otherFailures: 1}
	if !differ(full, room) || differ(room, full) || differ(room, &cachedConfiguration{otherFailures: 2}) {
		t.Error("want a difference only if the status was full and is not any longer")
	}
}
