package converge

import (
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/informers"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/templating"
)

// Entries of objects that could not be deleted stay in the inventory. When it is full,
// only those stay whose objects nothing else would find.
func TestKeptEntries(t *testing.T) {
	home := v0.ResourceStatus{Name: "a", UID: "1", Namespace: "ns"}
	for name, tc := range map[string]struct {
		entry      v0.ResourceStatus
		kept, full bool // kept: in an inventory with room; full: in a full one
	}{
		"object of the namespace":     {home, true, false},
		"object that was never there": {v0.ResourceStatus{Name: "a", Namespace: "ns"}, false, false},
		"object without an owner":     {v0.ResourceStatus{Name: "a", UID: "1", Namespace: "ns", Orphan: true}, true, true},
		"object elsewhere":            {v0.ResourceStatus{Name: "a", UID: "1", Namespace: "far"}, true, true},
		"object elsewhere, perhaps":   {v0.ResourceStatus{Name: "a", Namespace: "far"}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			parent := ownership.Parent{Level: templating.InstanceLevel, NamespacedName: types.NamespacedName{Namespace: "ns", Name: "cam"}}
			for entries, want := range map[int]bool{plan.MaxRecorded - 1: tc.kept, plan.MaxRecorded: tc.full} {
				p := &pass{parent: parent, Outcome: Outcome{Resources: make([]v0.ResourceStatus, entries)}}
				p.keep(tc.entry)
				if kept := len(p.Resources) == entries+1; kept != want {
					t.Errorf("kept among %d entries: %t, want %t", entries, kept, want)
				}
			}
		})
	}
}

// An object that a rollout holds and that does not exist is not ready, whether or not the
// inventory names it, as after a creation that has failed.
func TestHeldObjectsThatDoNotExist(t *testing.T) {
	watches, err := informers.New(t.Context(), &rest.Config{}, http.DefaultClient, func(ownership.Parent) {})
	if err != nil {
		t.Fatal(err)
	}
	ref := inventory.Ref{Kind: "ConfigMap", Namespace: "ns", Name: "cam"}
	held := plan.Step{Action: plan.Hold, Ref: ref, Desired: &plan.Desired{Ref: ref}}

	p := &pass{Converger: &Converger{Informers: watches}, known: &History{}}
	p.execute(t.Context(), []plan.Step{held})
	if p.Uncreated != 1 || len(p.Resources) != 0 {
		t.Errorf("not in the inventory: %d uncreated, resources %v", p.Uncreated, p.Resources)
	}
	held.Recorded = v0.ResourceStatus{Kind: "ConfigMap", Namespace: "ns", Name: "cam", Reason: v0.ReasonApplyFailed}
	p.Outcome = Outcome{}
	p.execute(t.Context(), []plan.Step{held})
	if len(p.Resources) != 1 || p.Resources[0].Ready || p.Resources[0].Reason == "" {
		t.Errorf("in the inventory: resources %v", p.Resources)
	}
}
