package informers

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/templating/readywhen"
)

func compiled(t *testing.T, source string) *readywhen.Condition {
	t.Helper()
	condition, err := readywhen.Compile(source)
	if err != nil {
		t.Fatal(err)
	}
	return condition
}

// A parent is notified when the verdict of its own condition changes, not when only
// those of other parents change.
func TestReadyWhenIsTheParentsOwn(t *testing.T) {
	w := watchAll(t)
	a, b := w.parent("a"), w.parent("b")
	up := compiled(t, "has(self.data.state) && self.data.state == 'up'")
	w.Ask(configMaps, a, a.NamespacedName, up)
	w.Ask(configMaps, b, b.NamespacedName, nil)
	w.eventually("the first sync", func() bool { return w.times(a) == 1 && w.times(b) == 1 })
	w.Note(configMaps, w.apply("a", "1"), up)
	w.Note(configMaps, w.apply("b", "1"), nil)
	w.catchUp()
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
	// Another condition over the same objects needs no new watch.
	before := w.watched[configMaps]
	down := compiled(t, "self.data.state == 'down'")
	if state := w.Ask(configMaps, a, a.NamespacedName, down); !state.Synced || w.watched[configMaps] != before {
		t.Error("a new condition has restarted the watch")
	}
	if ready, _ := object.ReadyBy(down); ready {
		t.Error("a is ready although its condition is not met")
	}
}

// Contents are kept only where a condition needs them, and only of objects that
// the controller has applied.
func TestContentsAreKeptForConditionsOnly(t *testing.T) {
	w := watchAll(t)
	a := w.parent("a")
	synced := func() bool { return w.Ask(configMaps, a, a.NamespacedName, nil).Synced }
	w.eventually("the first sync", synced)
	w.Note(configMaps, w.apply("a", "1"), nil)
	content := func() map[string]any {
		object, found := w.Get(configMaps, a.NamespacedName)
		if !found {
			return nil
		}
		return object.content
	}
	if content() != nil {
		t.Error("content is kept without a condition")
	}
	for i := range 70 { // the first needs a new list, the others nothing
		w.Ask(configMaps, a, a.NamespacedName, compiled(t, fmt.Sprintf("self.data.k == '%d'", i)))
	}
	w.eventually("the contents", func() bool { return synced() && content() != nil })
	if metadata := content()["metadata"].(map[string]any); metadata["managedFields"] != nil || metadata["name"] != "a" {
		t.Errorf("the metadata that is kept is %v", metadata)
	}
	object := w.apply("labelled", "1")
	object.SetManagedFields(nil)
	if trimWithContent(object).content != nil {
		t.Error("the content of an object that another client labelled is kept")
	}

	// Without a condition the contents are dropped after a while.
	w.Informers.dropContents(time.Now())
	if content() == nil {
		t.Error("the contents were dropped at once")
	}
	w.Informers.dropContents(time.Now().Add(contentLinger))
	w.eventually("the contents to be dropped", func() bool { return synced() && content() == nil })
	w.patch("a", `{"data":{"theirs":"x"}}`)
	if _, found := w.Get(configMaps, types.NamespacedName{Namespace: w.namespace, Name: "a"}); !found {
		t.Error("the object is no longer seen")
	}
}
