package controller

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	v0 "akri.sh/akri/api/v0"
)

// A kind is in use as long as one Instance has an object of it.
func TestKindsInUse(t *testing.T) {
	instance := func(configuration string, kinds ...string) *v0.Instance {
		instance := &v0.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}, Spec: v0.InstanceSpec{ConfigurationName: configuration}}
		for _, kind := range kinds {
			instance.Status.Resources = append(instance.Status.Resources, v0.ResourceStatus{Version: "v1", Kind: kind})
		}
		return instance
	}
	k := newKindsInUse()
	events := k.handler()
	check := func(configuration string, want ...string) {
		t.Helper()
		var got []string
		for _, kind := range k.of(types.NamespacedName{Namespace: "ns", Name: configuration}) {
			got = append(got, kind.Kind)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("kinds of %s: %v, want %v", configuration, got, want)
		}
	}
	create := func(i *v0.Instance) {
		events.Create(t.Context(), event.TypedCreateEvent[*v0.Instance]{Object: i}, nil)
	}
	update := func(before, now *v0.Instance) {
		events.Update(t.Context(), event.TypedUpdateEvent[*v0.Instance]{ObjectOld: before, ObjectNew: now}, nil)
	}
	remove := func(i *v0.Instance) {
		events.Delete(t.Context(), event.TypedDeleteEvent[*v0.Instance]{Object: i}, nil)
	}
	create(instance("cfg", "Pod", "Pod", "Service"))
	create(instance("cfg", "Pod"))
	create(instance("cfg"))
	check("cfg", "Pod", "Service")
	check("other")
	update(instance("cfg"), instance("cfg", "Job"))
	check("cfg", "Job", "Pod", "Service")
	update(instance("cfg", "Pod", "Pod", "Service"), instance("cfg", "Pod"))
	check("cfg", "Job", "Pod")
	update(instance("cfg", "Job"), instance("other", "Job"))
	check("cfg", "Pod")
	check("other", "Job")
	for range 2 {
		remove(instance("cfg", "Pod"))
	}
	remove(instance("other", "Job"))
	if len(k.groups) != 0 {
		t.Errorf("groups without objects are remembered: %v", k.groups)
	}
}
