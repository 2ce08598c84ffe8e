package plan

import (
	"strings"
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

func want(hash string, directives ...templating.Directives) []Desired {
	desired := Desired{Ref: ref, Kind: service, Hash: hash}
	for _, set := range directives {
		desired.Directives = set
	}
	return []Desired{desired}
}

type state = ownership.State

// have is the object with the fields of the controller, which has not applied it if they are "".
func have(is state, fields string, set ...func(*Observed)) map[inventory.Ref]Observed {
	is.Applied = fields != ""
	object := Observed{State: is, ManagedFieldsHash: fields}
	for _, set := range set {
		set(&object)
	}
	return map[inventory.Ref]Observed{ref: object}
}

func wrote(uid, hash, fields string) []v0.ResourceStatus {
	return []v0.ResourceStatus{{Version: "v1", Kind: "Service", Namespace: "ns", Name: "door-cam",
		UID: uid, Hash: hash, ManagedFieldsHash: fields}}
}

func TestComputeForOneObject(t *testing.T) {
	terminated := have(state{UID: "1", Owner: us}, "f", func(o *Observed) { o.Terminated = true })
	far := inventory.Ref{Kind: "Service", Namespace: "far", Name: "door-cam"}
	other := []v0.ResourceStatus{{Version: "v1", Kind: "Service", Namespace: "ns", Name: "other", UID: "2"}}
	toOrphan := []v0.ResourceStatus{{Version: "v1", Kind: "Service", Namespace: "ns", Name: "door-cam", UID: "1", Orphan: true}}
	announced := []v0.ResourceStatus{{Version: "v1", Kind: "Service", Namespace: "far", Name: "door-cam"}}
	ours, applied, none := have(state{UID: "1", Owner: us}, "f"), wrote("1", "a", "f"), []v0.ResourceStatus(nil)
	adopt, skip := templating.Directives{OnConflict: templating.ConflictAdopt}, templating.Directives{OnConflict: templating.ConflictSkip}
	once, orphan := templating.Directives{Once: true}, templating.Directives{DeletionPolicy: templating.DeletionOrphan}
	const held, replace, incomplete = "held", "replace", "incomplete"
	for name, tc := range map[string]struct {
		reason   string
		desired  []Desired
		observed map[inventory.Ref]Observed
		recorded []v0.ResourceStatus
		when     string // a rollout holds changes, terminated Pods are replaced, or not all is rendered
		expect   string // the actions, and whether they are changes or repairs
	}{
		"new":             {"what does not exist is created", want("a"), nil, none, "", "create"},
		"as rendered":     {"same hash, same fields: no request is needed", want("a"), ours, applied, "", "keep"},
		"template edited": {"the hash is not the one recorded", want("b"), ours, applied, "", "update change"},
		"field taken": {"a manager that changes the controller's field takes it out of the controller's set",
			want("a"), have(state{UID: "1", Owner: us}, "g"), applied, "", "update repair"},
		"owner reference removed": {"its UID is that of the applied object, so it is the parent's and is repaired",
			want("a"), have(state{UID: "1"}, "g"), applied, "", "update repair"},
		"all fields taken": {"its owner is the parent", want("a"), have(state{UID: "1", Owner: us}, ""), applied, "", "update repair"},
		"gone":             {"another client has deleted it", want("a"), nil, applied, "", "create repair"},
		"being recreated":  {"the controller has deleted it", want("a"), nil, wrote("1", "", ""), "", "create"},
		"lost record": {"the controller crashed before it wrote the status; the owner reference names the parent",
			want("a"), ours, none, "", "update change"},
		"another owner's": {"it belongs to another parent", want("a"), have(state{UID: "2", Owner: "other"}, "f"), none, "", "conflict"},
		"replaced by another owner": {"same name, other UID: the record is about another object",
			want("a"), have(state{UID: "2", Owner: "other"}, ""), applied, "", "conflict"},
		"the former parent's, being deleted": {"it disappears by itself: a device that is plugged in again waits for that",
			want("a"), have(state{UID: "2", Owner: "former", Parent: cam.ByName(), Terminating: true}, ""), none, "", "wait"},
		"the former parent's": {"its owner no longer exists, so garbage collection deletes it",
			want("a"), have(state{UID: "2", Owner: "former", Parent: cam.ByName(), Confirmed: true}, ""), none, "", "wait"},
		"another owner's, being deleted": {"its labels name another parent",
			want("a"), have(state{UID: "2", Owner: "other", Terminating: true}, ""), none, "", "conflict"},
		"unowned, to be adopted": {"the template says so, whether or not the object has the controller's label",
			want("a", adopt), have(state{UID: "2"}, ""), none, "", "update change"},
		"another owner's, to be adopted": {"only unowned objects can be adopted",
			want("a", adopt), have(state{UID: "2", Owner: "other"}, ""), none, "", "conflict"},
		"another owner's, to be skipped": {"the template accepts that",
			want("a", skip), have(state{UID: "2", Owner: "other"}, ""), none, "", "skip"},
		"skipped, and deleted by its owner": {"it is missing, which a rollout does not hold up",
			want("a", skip), nil, wrote("", "", ""), held, "create"},
		"recorded, but never applied": {"others can write the record; the object does not confirm it",
			want("a"), have(state{UID: "1"}, ""), applied, "", "conflict"},
		"terminating": {"an object that is being deleted cannot be repaired; a new one follows it",
			want("a"), have(state{UID: "1", Owner: us, Terminating: true}, ""), applied, "", "wait"},

		"once, and gone by itself": {"a Job that its TTL removed is not run again", want("a", once), nil, applied, "", "keep"},
		"once, and edited since":   {"another object is desired", want("b", once), nil, applied, "", "create"},
		"once, and never created":  {"it has not been created yet", want("a", once), nil, wrote("", "a", ""), "", "create change"},
		"a terminated Pod":         {"it is replaced when its back-off has expired", want("a"), terminated, applied, replace, "recreate"},
		"a terminated Pod, in back-off": {"it is not replaced earlier, even if its template was edited",
			want("b"), terminated, applied, "", "keep"},
		"a terminated Pod, created once": {"the template says so", want("a", once), terminated, applied, replace, "keep"},

		"to be orphaned, record lost": {"it has no owner, but the controller owns its fields",
			want("a", orphan), have(state{UID: "1", Parent: cam.ByName(), Confirmed: true}, "f"), none, "", "update change"},
		"to be orphaned, another parent's": {"two parents must not apply one object in turn", want("a", orphan),
			have(state{UID: "1", Parent: ownership.Parent{NamespacedName: types.NamespacedName{Name: "door"}}, Confirmed: true}, "f"),
			none, "", "conflict"},
		"orphaned": {"no template renders it any more, and it stays", nil, have(state{UID: "1"}, "f"), toOrphan, "", "release change"},

		"template removed":                {"what was applied and is no longer rendered is deleted", nil, ours, applied, "", "delete change"},
		"template removed, watch stopped": {"the inventory alone is enough to find it", nil, nil, applied, "", "delete change"},
		"template removed, record lost":   {"its owner reference names us", nil, ours, none, "", "delete change"},
		"template removed, apply of unknown outcome": {"the record has no UID, but the object was created: its owner reference names us",
			nil, ours, wrote("", "", ""), "", "delete change"},
		"never applied, no longer desired": {"there is nothing to delete", nil, nil, wrote("", "", ""), "", ""},
		"announced elsewhere, no longer desired": {"it may have been created before a crash, and garbage collection would not find it",
			nil, nil, announced, "", "delete change"},
		"labelled in another namespace": {"objects elsewhere are in the inventory before they exist", nil,
			map[inventory.Ref]Observed{far: {State: state{UID: "2", Owner: us, Applied: true}, ManagedFieldsHash: "f"}}, none, "", ""},
		"an owner reference to the parent, never applied": {
			"another client has created it for the parent; garbage collection deletes it",
			nil, have(state{UID: "2", Owner: us}, ""), none, "", ""},
		"labelled by another client": {"the labels alone do not make it the parent's", nil, have(state{UID: "2"}, ""), none, "", ""},
		"incomplete":                 {"a failed render must not look like a removed template", nil, ours, applied, incomplete, "keep"},
		"incomplete, record lost":    {"the same", nil, ours, none, incomplete, ""},

		"template edited, to be held":  {"the rollout gate holds it", want("b"), ours, applied, held, "hold change"},
		"template added, to be held":   {"the parent has objects already", want("a"), nil, other, held, "hold change, hold change"},
		"template removed, to be held": {"it is deleted when the others change", nil, ours, applied, held, "hold change"},
		"field taken, to be held": {"a repair does not make anything unavailable",
			want("a"), have(state{UID: "1", Owner: us}, "g"), applied, held, "update repair"},
		"gone, to be held":       {"a missing object is already unavailable", want("b"), nil, applied, held, "create"},
		"new parent, to be held": {"it has nothing that could become unavailable", want("a"), nil, none, held, "create"},
	} {
		t.Run(name, func(t *testing.T) {
			steps := Compute(Input{
				Parent: cam, Desired: tc.desired, Observed: tc.observed, Recorded: tc.recorded,
				Complete: tc.when != incomplete, ReplaceTerminated: tc.when == replace,
			})
			changes := Changes(steps)
			if tc.when == held {
				Withhold(steps)
			}
			var got []string
			for _, step := range steps {
				text := step.Action.String()
				if step.Change {
					text += " change"
				}
				if step.Repair {
					text += " repair"
				}
				got = append(got, text)
			}
			if text := strings.Join(got, ", "); text != tc.expect || changes != strings.Contains(text, "change") {
				t.Errorf("%s: got %q, want %q; changes: %t", tc.reason, text, tc.expect, changes)
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

// What kubectl has set is taken over only if the controller's fields have changed in an
// object that it applied.
func TestTakeOver(t *testing.T) {
	for name, tc := range map[string]struct {
		fields   string
		edited   bool
		recorded []v0.ResourceStatus
		adopt    templating.OnConflict
		takeOver bool
	}{
		"changed":         {fields: "g", edited: true, recorded: wrote("1", "a", "f"), takeOver: true},
		"both":            {fields: "g", edited: true, recorded: wrote("1", "b", "f"), takeOver: true},
		"template edited": {fields: "f", edited: true, recorded: wrote("1", "b", "f")},
		"not by kubectl":  {fields: "g", recorded: wrote("1", "a", "f")},
		"no fields left":  {edited: true, recorded: wrote("1", "a", "f")},
		"to be adopted":   {edited: true, adopt: templating.ConflictAdopt},
	} {
		t.Run(name, func(t *testing.T) {
			steps := Compute(Input{
				Parent: cam, Desired: want("a", templating.Directives{OnConflict: tc.adopt}), Recorded: tc.recorded, Complete: true,
				Observed: have(state{UID: "1", Owner: us}, tc.fields, func(o *Observed) { o.Edited = tc.edited }),
			})
			if len(steps) != 1 || steps[0].Action != Update || steps[0].TakeOver != tc.takeOver {
				t.Errorf("got %+v, want an update, take over: %v", steps, tc.takeOver)
			}
		})
	}
}
