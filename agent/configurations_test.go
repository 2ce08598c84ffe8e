package agent

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

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
	got, err := readConfiguration(object, "here")
	if err != nil {
		t.Fatal(err)
	}
	got.CreationTimestamp, got.DeletionTimestamp = now, &now // the same time in another zone
	if !reflect.DeepEqual(&got.Configuration, want) || got.otherFailures != 2 || got.otherMissing != 1 || !got.discovered {
		t.Errorf("kept:\n%+v\nwant:\n%+v", got, want)
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

// The oldest Configurations are served, of those whose handler is on the node. Another takes
// the place of one that is deleted.
func TestTheOldestAreServed(t *testing.T) {
	client, err := dynamic.NewForConfig(&rest.Config{Host: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := newConfigurations(client, "here", func(types.NamespacedName) {})
	if err != nil {
		t.Fatal(err)
	}
	r := &reconciler{configurations: c, registered: func(handler string) bool { return handler == "here" }}
	add := func(namespace, name, handler string, age int) *v0.Configuration {
		made := &cachedConfiguration{}
		made.Namespace, made.Name = namespace, name
		made.CreationTimestamp = metav1.NewTime(time.Unix(1_000_000-int64(age), 0))
		made.Spec.DiscoveryHandler.Name = handler
		if err := c.informer.GetIndexer().Add(made); err != nil {
			t.Fatal(err)
		}
		return &made.Configuration
	}
	expect := func(what string, configuration *v0.Configuration, served, reviewed bool) {
		t.Helper()
		reason, review := r.refuse(configuration)
		if (reason == "") != served || !served && !strings.Contains(reason, "a node serves at most 400 Configurations") {
			t.Errorf("%s: the reason is %q", what, reason)
		}
		if delay := time.Until(review); review.IsZero() == reviewed || reviewed && (delay < reviewDelay/2-time.Second || delay > reviewDelay) {
			t.Errorf("%s: judged again in %s", what, delay)
		}
	}
	first := add("a", "first", "here", 1000)
	for i := range maxServed - 2 {
		add("a", fmt.Sprintf("b%03d", i), "here", 500)
		add("a", fmt.Sprintf("elsewhere%03d", i), "elsewhere", 2000)
	}
	last := add("a", "x", "here", 100)
	expect("all are served", last, true, false)
	tooMany := add("a", "y", "here", 100)
	expect("the oldest", first, true, true)
	expect("the last one", last, true, true)
	expect("of the same age, the one with the later name", tooMany, false, true)
	expect("one whose handler is not on this node", add("a", "z", "elsewhere", 1), true, false)

	deleted := &cachedConfiguration{Configuration: *first.DeepCopy()}
	deleted.DeletionTimestamp = new(metav1.Now())
	if err := c.informer.GetIndexer().Update(deleted); err != nil {
		t.Fatal(err)
	}
	expect("the oldest is being deleted", tooMany, true, false)
}
