package converge

import (
	"slices"
	"testing"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/inventory"
)

func TestMemory(t *testing.T) {
	entry := func(name, uid string) v0.ResourceStatus {
		return v0.ResourceStatus{Version: "v1", Kind: "ConfigMap", Namespace: "ns", Name: name, UID: uid}
	}
	m := newMemory()
	names := func(recorded ...v0.ResourceStatus) []string {
		var names []string
		for _, found := range m.complete("parent", recorded) {
			names = append(names, found.Name+" "+found.UID)
		}
		return names
	}

	// A pass that is not reported is continued by the next one.
	m.apply("parent", entry("a", "1"), "")
	m.report("parent", []v0.ResourceStatus{entry("a", "1"), entry("failed", "")}, false)
	if got, want := names(entry("a", ""), entry("b", "2")), []string{"a 1", "b 2"}; !slices.Equal(got, want) {
		t.Errorf("the inventory is %v, want %v", got, want)
	}
	m.report("parent", nil, true)
	if got, want := names(entry("b", "2")), []string{"b 2"}; !slices.Equal(got, want) {
		t.Errorf("after a report, the inventory is %v, want %v", got, want)
	}

	// Objects are remembered for their parent until they are deleted.
	if !m.hasApplied("parent", "1") || m.hasApplied("parent", "2") || m.hasApplied("other", "1") {
		t.Error("it remembers the wrong objects")
	}
	m.deleted("parent", "1")
	if m.hasApplied("parent", "1") {
		t.Error("it remembers an object that was deleted")
	}

	// An object that others delete again and again takes the place of the former one.
	m.apply("parent", entry("a", "3"), "")
	m.apply("parent", entry("a", "4"), "3")
	if m.hasApplied("parent", "3") || !m.hasApplied("parent", "4") {
		t.Error("it remembers an object that was replaced, or not its successor")
	}

	// Changes count until the object is applied.
	changing := entry("a", "1")
	for want := 1; want <= 3; want++ {
		if got := m.changedAgain("parent", inventory.RefOf(changing)); got != want {
			t.Errorf("changed %d times, want %d", got, want)
		}
	}
	m.apply("parent", changing, "")
	if got := m.changedAgain("parent", inventory.RefOf(changing)); got != 1 {
		t.Errorf("after an apply, changed %d times, want 1", got)
	}

	m.forget("parent")
	if m.hasApplied("parent", "1") || len(m.byParent) > 0 {
		t.Error("the parent was not forgotten")
	}
}
