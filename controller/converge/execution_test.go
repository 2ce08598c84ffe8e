package converge

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/templating"
)

// Entries of objects that could not be deleted stay in the inventory. When it is full,
// only those stay whose objects nothing else would find.
func TestKeptEntries(t *testing.T) {
	home := v0.ResourceStatus{UID: "1", Namespace: "ns"}
	for name, tc := range map[string]struct {
		entry      v0.ResourceStatus
		kept, full bool // kept: in an inventory with room; full: in a full one
	}{
		"object of the namespace":     {home, true, false},
		"object that was never there": {v0.ResourceStatus{Namespace: "ns"}, false, false},
		"object without an owner":     {v0.ResourceStatus{UID: "1", Namespace: "ns", Orphan: true}, true, true},
		"object elsewhere":            {v0.ResourceStatus{UID: "1", Namespace: "far"}, true, true},
		"object elsewhere, perhaps":   {v0.ResourceStatus{Namespace: "far"}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			parent := ownership.Parent{Level: templating.InstanceLevel, NamespacedName: types.NamespacedName{Namespace: "ns", Name: "cam"}}
			for entries, want := range map[int]bool{plan.MaxRecorded - 1: tc.kept, plan.MaxRecorded: tc.full} {
				e := execution{parent: parent, result: &Outcome{Resources: make([]v0.ResourceStatus, entries)}}
				e.keep(tc.entry)
				if kept := len(e.result.Resources) == entries+1; kept != want {
					t.Errorf("kept among %d entries: %t, want %t", entries, kept, want)
				}
			}
		})
	}
}
