package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/templating"
)

const us types.UID = "parent"

var (
	cam     = ownership.Parent{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "cam"}, UID: us}
	ref     = inventory.Ref{Kind: "Service", Namespace: "ns", Name: "door-cam"}
	service = schema.GroupVersionKind{Version: "v1", Kind: "Service"}
)

func want(hash string) []Desired {
	return []Desired{{Ref: ref, Kind: service, Hash: hash}}
}

func have(object Observed) map[inventory.Ref]Observed {
	return map[inventory.Ref]Observed{ref: object}
}

func wrote(uid, hash, fields string) []v0.ResourceStatus {
	return []v0.ResourceStatus{{Version: "v1", Kind: "Service", Namespace: "ns", Name: "door-cam",
		UID: uid, Hash: hash, ManagedFieldsHash: fields}}
}

func TestComputeForOneObject(t *testing.T) {
	ours := Observed{UID: "1", Owner: us, ManagedFieldsHash: "f"}
	cases := map[string]struct {
		reason string
		in     Input
		hold   bool
		expect []Action
	}{
		"new": {
			reason: "what does not exist is created",
			in:     Input{Desired: want("a"), Complete: true},
			expect: []Action{Create},
		},
		"as rendered": {
			reason: "same hash, same fields: no request is needed",
			in:     Input{Desired: want("a"), Observed: have(ours), Recorded: wrote("1", "a", "f"), Complete: true},
			expect: []Action{Keep},
		},
		"template edited": {
			reason: "the hash is not the one recorded",
			in:     Input{Desired: want("b"), Observed: have(ours), Recorded: wrote("1", "a", "f"), Complete: true},
			expect: []Action{Update},
		},
		"field taken": {
			reason: "a manager that changes the controller's field takes it out of the controller's set",
			in: Input{
				Desired:  want("a"),
				Observed: have(Observed{UID: "1", Owner: us, ManagedFieldsHash: "g"}),
				Recorded: wrote("1", "a", "f"),
				Complete: true,
			},
			expect: []Action{Update},
		},
		"owner reference removed": {
			reason: "its UID is that of the applied object, so it is the parent's and is repaired",
			in: Input{Desired: want("a"), Observed: have(Observed{UID: "1", ManagedFieldsHash: "g"}),
				Recorded: wrote("1", "a", "f"), Complete: true},
			expect: []Action{Update},
		},
		"lost record": {
			reason: "the controller crashed before it wrote the status; the owner reference names the parent",
			in:     Input{Desired: want("a"), Observed: have(ours), Complete: true},
			expect: []Action{Update},
		},
		"another owner's": {
			reason: "it belongs to another parent",
			in:     Input{Desired: want("a"), Observed: have(Observed{UID: "2", Owner: "other", ManagedFieldsHash: "f"}), Complete: true},
			expect: []Action{Conflict},
		},
		"replaced by another owner": {
			reason: "same name, other UID: the record is about another object",
			in:     Input{Desired: want("a"), Observed: have(Observed{UID: "2", Owner: "other"}), Recorded: wrote("1", "a", "f"), Complete: true},
			expect: []Action{Conflict},
		},
		"the former parent's, being deleted": {
			reason: "it disappears by itself: a device that is plugged in again waits for that",
			in: Input{
				Desired:  want("a"),
				Observed: have(Observed{UID: "2", Owner: "former", Parent: cam.ByName(), Terminating: true}),
				Complete: true,
			},
			expect: []Action{Wait},
		},
		"another owner's, being deleted": {
			reason: "its labels name another parent",
			in:     Input{Desired: want("a"), Observed: have(Observed{UID: "2", Owner: "other", Terminating: true}), Complete: true},
			expect: []Action{Conflict},
		},
		"unowned, to be adopted": {
			reason: "the template says so, whether or not the object has the controller's label",
			in: Input{
				Desired:  []Desired{{Ref: ref, Kind: service, Hash: "a", OnConflict: templating.ConflictAdopt}},
				Observed: have(Observed{UID: "2"}),
				Complete: true,
			},
			expect: []Action{Update},
		},
		"another owner's, to be adopted": {
			reason: "only unowned objects can be adopted",
			in: Input{
				Desired:  []Desired{{Ref: ref, Kind: service, Hash: "a", OnConflict: templating.ConflictAdopt}},
				Observed: have(Observed{UID: "2", Owner: "other"}),
				Complete: true,
			},
			expect: []Action{Conflict},
		},
		"another owner's, to be skipped": {
			reason: "the template accepts that",
			in: Input{
				Desired:  []Desired{{Ref: ref, Kind: service, Hash: "a", OnConflict: templating.ConflictSkip}},
				Observed: have(Observed{UID: "2", Owner: "other"}),
				Complete: true,
			},
			expect: []Action{Skip},
		},
		"once, and gone by itself": {
			reason: "a Job that its TTL removed is not run again",
			in:     Input{Desired: []Desired{{Ref: ref, Kind: service, Hash: "a", Once: true}}, Recorded: wrote("1", "a", "f"), Complete: true},
			expect: []Action{Keep},
		},
		"once, and edited since": {
			reason: "another object is desired",
			in:     Input{Desired: []Desired{{Ref: ref, Kind: service, Hash: "b", Once: true}}, Recorded: wrote("1", "a", "f"), Complete: true},
			expect: []Action{Create},
		},
		"once, and never created": {
			reason: "it has not been created yet",
			in:     Input{Desired: []Desired{{Ref: ref, Kind: service, Hash: "a", Once: true}}, Recorded: wrote("", "a", ""), Complete: true},
			expect: []Action{Create},
		},
		"a terminated Pod": {
			reason: "it is replaced when its back-off has expired",
			in: Input{
				Desired:           want("a"),
				Observed:          have(Observed{UID: "1", Owner: us, ManagedFieldsHash: "f", Terminated: true}),
				Recorded:          wrote("1", "a", "f"),
				Complete:          true,
				ReplaceTerminated: true,
			},
			expect: []Action{Recreate},
		},
		"a terminated Pod, in back-off": {
			reason: "it is not replaced earlier, even if its template was edited",
			in: Input{
				Desired:  want("b"),
				Observed: have(Observed{UID: "1", Owner: us, ManagedFieldsHash: "f", Terminated: true}),
				Recorded: wrote("1", "a", "f"),
				Complete: true,
			},
			expect: []Action{Keep},
		},
		"a terminated Pod, created once": {
			reason: "the template says so",
			in: Input{
				Desired:           []Desired{{Ref: ref, Kind: service, Hash: "a", Once: true}},
				Observed:          have(Observed{UID: "1", Owner: us, ManagedFieldsHash: "f", Terminated: true}),
				Recorded:          wrote("1", "a", "f"),
				Complete:          true,
				ReplaceTerminated: true,
			},
			expect: []Action{Keep},
		},
		"skipped, and deleted by its owner": {
			reason: "it is missing, which a rollout does not hold up",
			in: Input{
				Desired:  []Desired{{Ref: ref, Kind: service, Hash: "a", OnConflict: templating.ConflictSkip}},
				Recorded: wrote("", "", ""),
				Complete: true,
			},
			hold:   true,
			expect: []Action{Create},
		},
		"to be orphaned, record lost": {
			reason: "it has no owner, but the controller owns its fields",
			in: Input{
				Desired:  []Desired{{Ref: ref, Kind: service, Hash: "a", Orphan: true}},
				Observed: have(Observed{UID: "1", ManagedFieldsHash: "f", Parent: cam.ByName(), Confirmed: true}),
				Complete: true,
			},
			expect: []Action{Update},
		},
		"to be orphaned, another parent's": {
			reason: "two parents must not apply one object in turn",
			in: Input{
				Desired:  []Desired{{Ref: ref, Kind: service, Hash: "a", Orphan: true}},
				Observed: have(Observed{UID: "1", ManagedFieldsHash: "f", Parent: ownership.Parent{UID: "door"}.ByName(), Confirmed: true}),
				Complete: true,
			},
			expect: []Action{Conflict},
		},
		"recorded, but never applied": {
			reason: "others can write the record; the object does not confirm it",
			in:     Input{Desired: want("a"), Observed: have(Observed{UID: "1"}), Recorded: wrote("1", "a", "f"), Complete: true},
			expect: []Action{Conflict},
		},
		"the former parent's": {
			reason: "its owner no longer exists, so garbage collection deletes it",
			in: Input{
				Desired:  want("a"),
				Observed: have(Observed{UID: "2", Owner: "former", Parent: cam.ByName(), Confirmed: true}),
				Complete: true,
			},
			expect: []Action{Wait},
		},
		"labelled in another namespace": {
			reason: "objects elsewhere are in the inventory before they exist",
			in: Input{Complete: true, Observed: map[inventory.Ref]Observed{
				{Kind: "Service", Namespace: "far", Name: "door-cam"}: {UID: "2", Owner: us, ManagedFieldsHash: "f"},
			}},
			expect: nil,
		},
		"an owner reference to the parent, never applied": {
			reason: "another client has created it for the parent; garbage collection deletes it",
			in:     Input{Observed: have(Observed{UID: "2", Owner: us}), Complete: true},
			expect: nil,
		},
		"orphaned": {
			reason: "no template renders it any more, and it stays",
			in: Input{Observed: have(Observed{UID: "1", ManagedFieldsHash: "f"}), Complete: true, Recorded: []v0.ResourceStatus{
				{Version: "v1", Kind: "Service", Namespace: "ns", Name: "door-cam", UID: "1", Orphan: true},
			}},
			expect: []Action{Release},
		},
		"terminating": {
			reason: "an object that is being deleted cannot be repaired; a new one follows it",
			in: Input{
				Desired:  want("a"),
				Observed: have(Observed{UID: "1", Owner: us, Terminating: true}),
				Recorded: wrote("1", "a", "f"),
				Complete: true,
			},
			expect: []Action{Wait},
		},
		"template removed": {
			reason: "what was applied and is no longer rendered is deleted",
			in:     Input{Observed: have(ours), Recorded: wrote("1", "a", "f"), Complete: true},
			expect: []Action{Delete},
		},
		"template removed, watch stopped": {
			reason: "the inventory alone is enough to find it",
			in:     Input{Recorded: wrote("1", "a", "f"), Complete: true},
			expect: []Action{Delete},
		},
		"template removed, record lost": {
			reason: "its owner reference names us",
			in:     Input{Observed: have(ours), Complete: true},
			expect: []Action{Delete},
		},
		"template removed, apply of unknown outcome": {
			reason: "the record has no UID, but the object was created: its owner reference names us",
			in:     Input{Observed: have(ours), Recorded: wrote("", "", ""), Complete: true},
			expect: []Action{Delete},
		},
		"never applied, no longer desired": {
			reason: "there is nothing to delete",
			in:     Input{Recorded: wrote("", "", ""), Complete: true},
			expect: nil,
		},
		"announced elsewhere, no longer desired": {
			reason: "it may have been created before a crash, and garbage collection would not find it",
			in: Input{Complete: true, Recorded: []v0.ResourceStatus{
				{Version: "v1", Kind: "Service", Namespace: "far", Name: "door-cam"},
			}},
			expect: []Action{Delete},
		},
		"labelled by another client": {
			reason: "the labels alone do not make it the parent's",
			in:     Input{Observed: have(Observed{UID: "2"}), Complete: true},
			expect: nil,
		},
		"template edited, to be held": {
			reason: "the rollout gate holds it",
			in:     Input{Desired: want("b"), Observed: have(ours), Recorded: wrote("1", "a", "f"), Complete: true},
			hold:   true,
			expect: []Action{Hold},
		},
		"template added, to be held": {
			reason: "the parent has objects already",
			in: Input{Desired: want("a"), Complete: true, Recorded: []v0.ResourceStatus{
				{Version: "v1", Kind: "Service", Namespace: "ns", Name: "other", UID: "2"},
			}},
			hold:   true,
			expect: []Action{Hold, Hold},
		},
		"template removed, to be held": {
			reason: "it is deleted when the others change",
			in:     Input{Observed: have(ours), Recorded: wrote("1", "a", "f"), Complete: true},
			hold:   true,
			expect: []Action{Hold},
		},
		"field taken, to be held": {
			reason: "a repair does not make anything unavailable",
			in: Input{
				Desired:  want("a"),
				Observed: have(Observed{UID: "1", Owner: us, ManagedFieldsHash: "g"}),
				Recorded: wrote("1", "a", "f"),
				Complete: true,
			},
			hold:   true,
			expect: []Action{Update},
		},
		"gone, to be held": {
			reason: "a missing object is already unavailable",
			in:     Input{Desired: want("b"), Recorded: wrote("1", "a", "f"), Complete: true},
			hold:   true,
			expect: []Action{Create},
		},
		"new parent, to be held": {
			reason: "it has nothing that could become unavailable",
			in:     Input{Desired: want("a"), Complete: true},
			hold:   true,
			expect: []Action{Create},
		},
		"incomplete": {
			reason: "a failed render must not look like a removed template",
			in:     Input{Observed: have(ours), Recorded: wrote("1", "a", "f")},
			expect: []Action{Keep},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.in.Parent = cam
			steps := Compute(tc.in)
			if tc.hold {
				Withhold(steps)
			}
			var got []Action
			for _, step := range steps {
				got = append(got, step.Action)
			}
			if diff := cmp.Diff(tc.expect, got); diff != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDeletionsComeLastAndSorted(t *testing.T) {
	in := Input{
		Parent:  cam,
		Desired: want("a"),
		Recorded: []v0.ResourceStatus{
			{Version: "v1", Kind: "Service", Namespace: "ns", Name: "b", UID: "2"},
			{Version: "v1", Kind: "Pod", Namespace: "ns", Name: "z", UID: "3"},
			{Version: "v1", Kind: "Service", Namespace: "ns", Name: "a", UID: "4"},
		},
		Complete: true,
	}
	var got []string
	for _, step := range Compute(in) {
		got = append(got, step.Action.String()+" "+step.Ref.Name)
	}
	expect := []string{"create door-cam", "delete z", "delete a", "delete b"}
	if diff := cmp.Diff(expect, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestChangesAndRepairs(t *testing.T) {
	ours := Observed{UID: "1", Owner: us, ManagedFieldsHash: "f"}
	for name, tc := range map[string]struct {
		in              Input
		changes, repair bool
	}{
		"nothing to do":   {in: Input{Desired: want("a"), Observed: have(ours), Recorded: wrote("1", "a", "f"), Complete: true}},
		"first objects":   {in: Input{Desired: want("a"), Complete: true}},
		"template edited": {in: Input{Desired: want("b"), Observed: have(ours), Recorded: wrote("1", "a", "f"), Complete: true}, changes: true},
		"template gone":   {in: Input{Observed: have(ours), Recorded: wrote("1", "a", "f"), Complete: true}, changes: true},
		"field taken": {in: Input{
			Desired: want("a"), Observed: have(Observed{UID: "1", Owner: us}), Recorded: wrote("1", "a", "f"), Complete: true,
		}, repair: true},
		"object gone":     {in: Input{Desired: want("a"), Recorded: wrote("1", "a", "f"), Complete: true}, repair: true},
		"being recreated": {in: Input{Desired: want("a"), Recorded: wrote("1", "", ""), Complete: true}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.in.Parent = cam
			steps := Compute(tc.in)
			if got := Changes(steps); got != tc.changes {
				t.Errorf("changes: %v, want %v", got, tc.changes)
			}
			if got := len(steps) > 0 && steps[0].Repair; got != tc.repair {
				t.Errorf("repair: %v, want %v", got, tc.repair)
			}
		})
	}
}

// What kubectl has set is taken over only if the controller's fields have changed in an
// object that it applied.
func TestTakeOver(t *testing.T) {
	with := func(managedFieldsHash string) Observed {
		return Observed{UID: "1", Owner: us, ManagedFieldsHash: managedFieldsHash, Edited: true}
	}
	for name, tc := range map[string]struct {
		have     Observed
		recorded []v0.ResourceStatus
		adopt    templating.OnConflict
		takeOver bool
	}{
		"changed":         {have: with("g"), recorded: wrote("1", "a", "f"), takeOver: true},
		"both":            {have: with("g"), recorded: wrote("1", "b", "f"), takeOver: true},
		"template edited": {have: with("f"), recorded: wrote("1", "b", "f")},
		"not by kubectl":  {have: Observed{UID: "1", Owner: us, ManagedFieldsHash: "g"}, recorded: wrote("1", "a", "f")},
		"no fields left":  {have: with(""), recorded: wrote("1", "a", "f")},
		"to be adopted":   {have: Observed{UID: "1", Edited: true}, adopt: templating.ConflictAdopt},
	} {
		t.Run(name, func(t *testing.T) {
			desired := want("a")
			desired[0].OnConflict = tc.adopt
			steps := Compute(Input{Parent: cam, Desired: desired, Observed: have(tc.have), Recorded: tc.recorded, Complete: true})
			if len(steps) != 1 || steps[0].Action != Update || steps[0].TakeOver != tc.takeOver {
				t.Errorf("got %+v, want an update, take over: %v", steps, tc.takeOver)
			}
		})
	}
}
