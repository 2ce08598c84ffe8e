package informers

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/controller/ownership"
)

// A parent is notified when the verdict of its own condition changes, not when only
// those of other parents change.
func TestReadyWhenIsTheParentsOwn(t *testing.T) {
	w := watchAll(t)
	a, b := w.parent("a"), w.parent("b")
	up := compiled(t, "has(self.data.state) && self.data.state == 'up'")
	w.synced(a)
	w.synced(b)
	w.applied(a, up)
	w.applied(b, nil)
	notifiedA, notifiedB := w.times(a), w.times(b)

	w.patch("b", `{"data":{"state":"up"}}`) // b does not judge by it
	w.patch("a", `{"data":{"state":"down"}}`)
	w.patch("a", `{"data":{"state":"up"}}`)
	w.eventually("a change of the verdict", func() bool { return w.times(a) == notifiedA+1 })
	if n := w.times(b) - notifiedB; n != 0 {
		t.Errorf("b was notified %d times of a condition that is not its own", n)
	}
	object, _ := w.Get(configMaps, a.NamespacedName)
	if ready, reason := object.ReadyBy(up); !ready {
		t.Errorf("a is not ready: %s", reason)
	}
}

// A condition that is new for an object costs one read of that object. It neither
// lists the resource again nor notifies a parent, however often conditions change.
func TestNewConditions(t *testing.T) {
	w := watchAll(t)
	a, b := w.parent("a"), w.parent("b")
	for _, parent := range []ownership.Parent{a, b} {
		w.synced(parent)
		w.applied(parent, nil)
	}
	informer, requests, notifiedA, notifiedB := w.find(configMaps), w.requests.Load(), w.times(a), w.times(b)
	const conditions = 70
	for i := range conditions {
		condition := compiled(t, fmt.Sprintf("self.data.k == '1' && %d == %[1]d", i))
		for range 2 { // the verdict is kept
			if err := w.Judge(t.Context(), configMaps, a, a.NamespacedName, condition); err != nil {
				t.Fatal(err)
			}
			if object, _ := w.Get(configMaps, a.NamespacedName); !object.judgedBy(condition) || object.verdict != "" {
				t.Fatalf("judged by %q: %q", object.condition, object.verdict)
			}
		}
	}
	if n := w.requests.Load() - requests; n != conditions || w.find(configMaps) != informer {
		t.Errorf("%d requests for %d conditions; the informer is the same: %v", n, conditions, w.find(configMaps) == informer)
	}
	// Conditions of objects that do not exist, and those of others, cost nothing.
	foreign := compiled(t, "self.data.k == '2'")
	for _, name := range []types.NamespacedName{w.parent("absent").NamespacedName, a.NamespacedName} {
		if err := w.Judge(t.Context(), configMaps, b, name, foreign); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.requests.Load() - requests; n != conditions {
		t.Errorf("%d requests, want %d", n, conditions)
	}
	if w.times(a) != notifiedA || w.times(b) != notifiedB {
		t.Error("a new condition has notified a parent")
	}
	// From now on, the watch judges by the condition.
	last := compiled(t, "self.data.k == '2'")
	if err := w.Judge(t.Context(), configMaps, a, a.NamespacedName, last); err != nil {
		t.Fatal(err)
	}
	w.patch("a", `{"data":{"k":"2"}}`)
	w.eventually("a verdict", func() bool {
		object, _ := w.Get(configMaps, a.NamespacedName)
		ready, _ := object.ReadyBy(last)
		return ready
	})
}
