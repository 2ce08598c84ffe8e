package informers

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/templating"
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

// labelled is an object with all the labels that the controller sets. The labels are
// all that makes it look like the controller's.
func labelled(name string, version int, change ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	object.SetNamespace("ns")
	object.SetName(name)
	object.SetUID(types.UID("uid-" + name))
	object.SetResourceVersion(fmt.Sprint(version))
	object.SetLabels(map[string]string{v0.LabelManagedBy: v0.ManagedBy, v0.LabelConfiguration: "cfg", v0.LabelInstance: "cam"})
	for _, apply := range change {
		apply(object)
	}
	return object
}

func owned(object *unstructured.Unstructured) {
	object.SetOwnerReferences([]metav1.OwnerReference{
		{APIVersion: "akri.sh/v0", Kind: "Instance", Name: "cam", UID: "cam-uid", Controller: new(true)},
	})
}

func applied(object *unstructured.Unstructured) {
	object.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: v0.FieldManagerController, Operation: metav1.ManagedFieldsOperationApply,
		FieldsV1: metav1.NewFieldsV1(`{"f:data":{}}`),
	}})
}

func home(namespace string) func(*unstructured.Unstructured) {
	return func(object *unstructured.Unstructured) {
		labels := object.GetLabels()
		labels[v0.LabelNamespace] = namespace
		object.SetLabels(labels)
	}
}

// memoryStore returns a store and the notifications of it.
func memoryStore() (s *store, notified *[]ownership.Parent) {
	notified = new([]ownership.Parent)
	n := func(parent ownership.Parent) { *notified = append(*notified, parent) }
	return newStore(n, func(func(types.NamespacedName) bool) {}, func() {}), notified
}

// Anyone can put the controller's labels on an object. Such objects take no memory
// and requeue nobody, whatever happens to them.
func TestForeignObjectsAreIgnored(t *testing.T) {
	cam := ownership.Parent{Level: templating.InstanceLevel, NamespacedName: types.NamespacedName{Namespace: "ns", Name: "cam"}}
	name := types.NamespacedName{Namespace: "ns", Name: "a"}
	anothers := func(object *unstructured.Unstructured) {
		object.SetOwnerReferences([]metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "cam", UID: "cam-uid", Controller: new(true)},
		})
	}
	notController := func(object *unstructured.Unstructured) {
		owned(object)
		references := object.GetOwnerReferences()
		references[0].Controller = nil
		object.SetOwnerReferences(references)
	}
	label := func(object *unstructured.Unstructured) {
		labels := object.GetLabels()
		labels[v0.LabelOwner] = "cam-uid"
		object.SetLabels(labels)
	}
	for reason, change := range map[string]func(*unstructured.Unstructured){
		"labels alone":       func(*unstructured.Unstructured) {},
		"another controller": anothers,
		"the parent owns, but is controller of nothing": notController,
		"owner label, but never applied":                label,
		"a parent in another namespace": func(object *unstructured.Unstructured) {
			home("other")(object)
			owned(object)
			label(object)
		},
	} {
		t.Run(reason, func(t *testing.T) {
			s, notified := memoryStore()
			must(t, s.Add(labelled("a", 1, change)))
			must(t, s.Update(labelled("a", 2, change, label)))
			must(t, s.Replace([]any{labelled("a", 3, change), labelled("b", 3, change)}, "3"))
			must(t, s.Delete(labelled("a", 4, change)))
			if _, found := s.get(name); found || s.len() != 0 || len(s.byParent) != 0 || len(*notified) != 0 {
				t.Errorf("%d objects are kept, notified: %v", s.len(), *notified)
			}
		})
	}
	for reason, change := range map[string]func(*unstructured.Unstructured){
		"owned":                                owned,
		"applied, owner reference removed":     applied,
		"applied, as an orphan or far away":    func(object *unstructured.Unstructured) { applied(object); label(object) },
		"owned, managed fields were cleared":   owned,
		"applied, has another controller now ": func(object *unstructured.Unstructured) { applied(object); anothers(object) },
	} {
		t.Run(reason, func(t *testing.T) {
			s, notified := memoryStore()
			must(t, s.Add(labelled("a", 1, change)))
			if objects := s.ownedBy(cam); len(objects) != 1 || len(*notified) != 1 || (*notified)[0] != cam {
				t.Fatalf("%d objects are kept, notified: %v", len(objects), *notified)
			}
			must(t, s.Update(labelled("a", 2))) // somebody takes it over: only its labels are left
			if _, found := s.get(name); found || len(s.byParent) != 0 || len(*notified) != 2 || (*notified)[1] != cam {
				t.Errorf("it is kept: %v; notified: %v", found, *notified)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A list after an interruption notifies the parents of what differs only.
func TestLists(t *testing.T) {
	s, notified := memoryStore()
	lists := 0
	s.listed = func() { lists++ }
	instance := func(name string) func(*unstructured.Unstructured) {
		return func(object *unstructured.Unstructured) {
			labels := object.GetLabels()
			labels[v0.LabelInstance] = name
			object.SetLabels(labels)
		}
	}
	object := func(name string, version int, change ...func(*unstructured.Unstructured)) any {
		return labelled(name, version, append([]func(*unstructured.Unstructured){applied, instance("parent-" + name)}, change...)...)
	}
	must(t, s.Replace([]any{object("a", 1), object("b", 1), object("c", 1), object("d", 1)}, "1"))
	if len(*notified) != 4 || s.len() != 4 {
		t.Errorf("after the first list %d objects, notified %v", s.len(), *notified)
	}
	*notified = nil
	changed := func(object *unstructured.Unstructured) {
		object.SetManagedFields([]metav1.ManagedFieldsEntry{{
			Manager: v0.FieldManagerController, Operation: metav1.ManagedFieldsOperationApply,
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`),
		}})
	}
	must(t, s.Replace([]any{object("a", 1), object("b", 2), object("c", 2, changed)}, "3"))
	got := map[string]bool{}
	for _, parent := range *notified {
		got[parent.Name] = true
	}
	if len(*notified) != 2 || !got["parent-c"] || !got["parent-d"] || s.len() != 3 || lists != 2 {
		t.Errorf("after the second list %d objects, notified %v", s.len(), *notified)
	}
}

// The answer to an apply may arrive after the watch's event that the object was deleted
// or has lost its labels. There is no further event, so the answer must not count.
func TestLateAnswers(t *testing.T) {
	name := types.NamespacedName{Namespace: "ns", Name: "a"}
	for title, overtake := range map[string]func(*store) error{
		"an event": func(s *store) error {
			must(t, s.Update(labelled("a", 6, applied, owned)))
			return s.Delete(labelled("a", 7, applied, owned))
		},
		"a list": func(s *store) error { return s.Replace(nil, "7") },
	} {
		t.Run(title, func(t *testing.T) {
			s, notified := memoryStore()
			must(t, s.Replace([]any{labelled("a", 5, applied, owned)}, "5"))
			must(t, overtake(s))
			*notified = nil
			s.record(Trim(labelled("a", 6, applied, owned)))
			if object, found := s.get(name); found {
				t.Errorf("version %s still counts", object.ResourceVersion)
			}
			if len(*notified) != 1 || (*notified)[0].Name != "cam" {
				t.Errorf("notified %v", *notified)
			}
			*notified = nil
			s.record(Trim(labelled("a", 8, applied, owned)))
			if object, found := s.get(name); !found || object.ResourceVersion != "8" || len(*notified) != 0 {
				t.Errorf("the next answer does not count, notified %v", *notified)
			}
			must(t, s.Update(labelled("a", 7, owned))) // older than the answer
			if object, _ := s.get(name); object.ResourceVersion != "8" || len(*notified) != 0 {
				t.Errorf("version %s counts after a later answer, notified %v", object.ResourceVersion, *notified)
			}
		})
	}
}

// It may also arrive while the store takes a list in.
func TestAnswersDuringAList(t *testing.T) {
	for title, list := range map[string][]any{"an object is new": {labelled("b", 60, owned)}, "one is missing": nil} {
		s, notified := memoryStore()
		if list == nil {
			must(t, s.Replace([]any{labelled("b", 40, owned)}, "40"))
		}
		*notified = nil
		s.notify = func(parent ownership.Parent) {
			*notified = append(*notified, parent)
			if len(*notified) == 1 {
				s.record(Trim(labelled("a", 50, applied, owned)))
			}
		}
		must(t, s.Replace(list, "70"))
		if object, found := s.get(types.NamespacedName{Namespace: "ns", Name: "a"}); found || len(*notified) != 2 {
			t.Errorf("%s: %+v still counts, notified %v", title, object, *notified)
		}
	}
}

// The content of an object is written by anyone. It cannot crash the process.
func TestPanicsAreContained(t *testing.T) {
	s, notified := memoryStore()
	broken := compiled(t, "true")
	s.record(trim(labelled("bad", 1, applied), broken))
	must(t, s.Update(labelled("bad", 2, owned, func(object *unstructured.Unstructured) {
		object.SetKind("Pod")
		object.Object["status"] = map[string]any{"phase": "Running", "containerStatuses": []any{panics{}}}
	})))
	bad, found := s.get(types.NamespacedName{Namespace: "ns", Name: "bad"})
	if ready, reason := bad.ReadyBy(broken); !found || ready || reason != unjudged || bad.Ready || bad.Owner != "cam-uid" {
		t.Errorf("it is seen as %+v", bad)
	}
	if len(*notified) != 1 {
		t.Errorf("notified %v", *notified)
	}
}

// panics is a value that cannot be copied.
type panics struct{}

// An object is judged by the condition of the parent that has applied it, and other conditions
// are not mistaken for it.
func TestConditionsAreOfTheOwner(t *testing.T) {
	s, _ := memoryStore()
	name := types.NamespacedName{Namespace: "ns", Name: "a"}
	ours, theirs := compiled(t, "self.kind == 'ConfigMap'"), compiled(t, "false")
	s.record(trim(labelled("a", 1, applied), ours))
	must(t, s.Replace([]any{labelled("a", 1, applied)}, "1"))
	must(t, s.Update(labelled("a", 2, applied)))
	object, _ := s.get(name)
	if ready, reason := object.ReadyBy(ours); !ready {
		t.Errorf("not ready by its parent's condition: %s", reason)
	}
	if ready, reason := object.ReadyBy(theirs); ready || reason != "not evaluated yet" {
		t.Errorf("the other parent's condition: %v, %q", ready, reason)
	}
	must(t, s.Delete(labelled("a", 3, applied)))
	must(t, s.Add(labelled("a", 4, applied)))
	if object, _ := s.get(name); object.judgedBy(ours) {
		t.Error("the condition of a deleted object is kept")
	}
}

// A parent that leaves an object to its owner learns of the deletion, also of one that
// happens while the watch is interrupted.
func TestAwaitedDeletions(t *testing.T) {
	cam := ownership.Parent{Level: templating.InstanceLevel, NamespacedName: types.NamespacedName{Namespace: "ns", Name: "cam"}}
	door := ownership.Parent{Level: templating.InstanceLevel, NamespacedName: types.NamespacedName{Namespace: "ns", Name: "door"}}
	name := Name{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "a"}}
	object := labelled("a", 1, owned, applied)
	for what, lose := range map[string]func(*store) error{
		"deleted":          func(s *store) error { return s.Delete(labelled("a", 2, owned, applied)) },
		"not in the list":  func(s *store) error { return s.Replace(nil, "3") },
		"no longer theirs": func(s *store) error { return s.Update(labelled("a", 2)) },
	} {
		s, notified := awaiting(door, name)
		if err := s.Add(object); err != nil {
			t.Fatal(err)
		}
		*notified = nil
		if err := lose(s); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(*notified, cam) || !slices.Contains(*notified, door) {
			t.Errorf("%s: notified %v, want both", what, *notified)
		}
	}
	s, notified := awaiting(door, name)
	if err := s.Replace(nil, "3"); err != nil || !slices.Equal(*notified, []ownership.Parent{door}) {
		t.Errorf("created and deleted between two lists: notified %v, %v", *notified, err)
	}
}

// awaiting returns a store whose Informers have a parent that awaits the deletion of an object.
func awaiting(parent ownership.Parent, object Name) (s *store, notified *[]ownership.Parent) {
	s, notified = memoryStore()
	all := &Informers{notify: s.notify, awaited: map[ownership.Parent][]Name{}}
	all.Await(parent, []Name{object})
	s.gone = func(isGone func(types.NamespacedName) bool) { all.gone(object.Resource, isGone) }
	return s, notified
}
