package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// child returns a ConfigMap with a device.
func child(name, device string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: configMap("bench-1", name, device)}
}

// withPorts returns a Service with the given ports.
func withPorts(name string, ports ...int64) *unstructured.Unstructured {
	var list []any
	for _, port := range ports {
		list = append(list, map[string]any{"port": port})
	}
	return object("v1", "Service", "bench-1", name, map[string]any{"spec": map[string]any{"ports": list}})
}

func TestAwaitRepair(t *testing.T) {
	edit, deletion, replacement := drifts[0], drifts[1], drifts[2]
	cases := map[string]struct {
		drift  drift
		events []watch.Event // one each second
		took   time.Duration
	}{
		"an edit": {edit, []watch.Event{
			{Type: watch.Added, Object: child("a", "x")}, {Type: watch.Modified, Object: child("b", "damaged")},
			{Type: watch.Modified, Object: child("a", "damaged")}, {Type: watch.Modified, Object: child("b", "x")},
			{Type: watch.Bookmark, Object: &metav1.Status{}}, {Type: watch.Modified, Object: child("a", "x")},
		}, 3 * time.Second},
		"a deletion": {deletion, []watch.Event{
			{Type: watch.Added, Object: child("a", "x")}, {Type: watch.Deleted, Object: child("a", "x")},
			{Type: watch.Added, Object: child("b", "x")}, {Type: watch.Added, Object: child("a", "x")},
		}, 2 * time.Second},
		"a replacement": {replacement, []watch.Event{
			{Type: watch.Added, Object: withPorts("a", 80)}, {Type: watch.Modified, Object: withPorts("a", 81)},
			{Type: watch.Modified, Object: withPorts("b", 80)}, {Type: watch.Modified, Object: withPorts("a", 80, 81)},
			{Type: watch.Modified, Object: withPorts("a", 80)},
		}, 3 * time.Second},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				events := watch.NewFake()
				go func() {
					for _, event := range c.events {
						sleep(t.Context(), time.Second)
						events.Action(event.Type, event.Object)
					}
				}()
				if took, err := awaitRepair(t.Context(), events, c.drift, "a"); err != nil || took != c.took {
					t.Errorf("got %v, %v, want %v", took, err, c.took)
				}
			})
		})
	}
	expectTimeout(t, 30*time.Second, "a was not repaired within 30s", func(ctx context.Context) error {
		events := watch.NewFakeWithChanSize(1, false)
		events.Delete(child("a", "x"))
		_, err := awaitRepair(ctx, events, deletion, "a")
		return err
	})
	closed := watch.NewFake()
	closed.Stop()
	_, err := awaitRepair(t.Context(), closed, edit, "a")
	expectError(t, err, "the watch was closed")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = awaitRepair(ctx, watch.NewFake(), edit, "a")
	expectError(t, err, "context canceled")
}

// The bare client ignores what is as it should be, and objects of nobody. It refuses a
// watch that sends no objects, and sends nothing meanwhile: it has no client here.
func TestFollowDrifts(t *testing.T) {
	instance := newInstance("bench-1", deviceName(1))
	parents := map[string]*unstructured.Unstructured{instance.GetName(): instance}
	events := watch.NewFakeWithChanSize(3, false)
	events.Modify(bareObjects(instance)[0])
	events.Delete(child("other", "damaged"))
	events.Error(&metav1.Status{Status: metav1.StatusFailure})
	expectError(t, (&bench{}).followDrifts(t.Context(), events, drifts[0], parents), "bare client: watch: got *v1.Status")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	events = watch.NewFakeWithChanSize(1, false)
	events.Error(&metav1.Status{Status: metav1.StatusFailure})
	expectError(t, (&bench{}).followDrifts(ctx, events, drifts[0], parents), "")
}
