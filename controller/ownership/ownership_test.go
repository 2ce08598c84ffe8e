package ownership

import (
	"encoding/json"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/templating"
)

var cam = Parent{Level: templating.InstanceLevel, NamespacedName: types.NamespacedName{Namespace: "ns", Name: "cam"}, UID: "cam-uid"}

// object is an existing object with the labels that the controller renders.
func object(change ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	object.SetNamespace("ns")
	object.SetName("door-cam")
	object.SetUID("1")
	object.SetLabels(map[string]string{v0.LabelConfiguration: "cameras", v0.LabelInstance: "cam"})
	for _, apply := range change {
		apply(object)
	}
	return object
}

func ownedBy(uid types.UID) func(*unstructured.Unstructured) { return ownedByNamed(uid, "other") }

func ownedByNamed(uid types.UID, name string) func(*unstructured.Unstructured) {
	return func(object *unstructured.Unstructured) {
		object.SetOwnerReferences(
			[]metav1.OwnerReference{{APIVersion: "akri.sh/v0", Kind: "Instance", Name: name, UID: uid, Controller: new(true)}},
		)
	}
}

func label(key, value string) func(*unstructured.Unstructured) {
	return func(object *unstructured.Unstructured) {
		labels := object.GetLabels()
		labels[key] = value
		object.SetLabels(labels)
	}
}

// applied makes the controller the manager of the labels that the object has.
func applied(object *unstructured.Unstructured) { managed(object, metav1.ManagedFieldsOperationApply) }

func updated(object *unstructured.Unstructured) {
	managed(object, metav1.ManagedFieldsOperationUpdate)
}

func managed(object *unstructured.Unstructured, operation metav1.ManagedFieldsOperationType) {
	labels := map[string]any{}
	for key := range object.GetLabels() {
		labels["f:"+key] = map[string]any{}
	}
	fields, err := json.Marshal(map[string]any{"f:metadata": map[string]any{"f:labels": labels}})
	if err != nil {
		panic(err)
	}
	object.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: v0.FieldManagerController, Operation: operation, FieldsV1: metav1.NewFieldsV1(string(fields)),
	}})
}

func terminating(object *unstructured.Unstructured) {
	now := metav1.NewTime(time.Unix(1, 0))
	object.SetDeletionTimestamp(&now)
}

func TestJudge(t *testing.T) {
	for name, test := range map[string]struct {
		object  *unstructured.Unstructured
		claim   Claim
		verdict Verdict
		owns    bool
		deletes bool
	}{
		"our owner reference":                    {object(ownedBy("cam-uid")), Claim{}, Ours, true, true},
		"our owner label, in another place":      {object(label(v0.LabelOwner, "cam-uid"), applied), Claim{}, Ours, true, true},
		"our owner label, set by another client": {object(applied, label(v0.LabelOwner, "cam-uid")), Claim{}, Unowned, false, false},
		"our owner label, never applied":         {object(label(v0.LabelOwner, "cam-uid")), Claim{}, Unowned, false, false},
		"in the inventory, reference removed":    {object(applied), Claim{Applied: "1"}, Ours, true, false},
		"in the inventory, everything removed":   {object(), Claim{Applied: "1", Remembered: true}, Ours, true, false},
		"in the inventory only":                  {object(), Claim{Applied: "1"}, Unowned, false, false},
		"in the inventory, another's now":        {object(ownedBy("other")), Claim{Applied: "1", Remembered: true}, Foreign, false, false},
		"in the inventory, applied for another since": {
			object(label(v0.LabelInstance, "door"), applied), Claim{Applied: "1", Remembered: true}, Unowned, false, false},
		"in the inventory, labels changed by others": {
			object(applied, label(v0.LabelInstance, "door"), unmanaged(v0.LabelInstance)), Claim{Applied: "1"}, Ours, true, false},
		"not the object in the inventory": {object(applied), Claim{Applied: "2"}, Unowned, false, false},
		"another's owner reference":       {object(ownedBy("other")), Claim{Adopt: AdoptAny}, Foreign, false, false},
		"another's owner label": {
			object(label(v0.LabelOwner, "other"), applied),
			Claim{Adopt: AdoptAny}, Foreign, false, false,
		},
		"the reference counts, not the label": {
			object(ownedBy("other"), label(v0.LabelOwner, "cam-uid"), applied),
			Claim{}, Foreign, false, false,
		},
		"the former parent's": {object(ownedByNamed("former", "cam")), Claim{Adopt: AdoptAny}, Former, false, false},
		"the former parent's, being deleted": {
			object(ownedByNamed("former", "cam"), terminating),
			Claim{Adopt: AdoptAny}, Former, false, false,
		},
		"the former parent's, elsewhere": {object(label(v0.LabelOwner, "former"), applied), Claim{}, Foreign, false, false},
		"the same, being deleted":        {object(label(v0.LabelOwner, "former"), applied, terminating), Claim{}, Former, false, false},
		"another parent's, being deleted": {
			object(ownedBy("other"), label(v0.LabelInstance, "door"), terminating),
			Claim{}, Foreign, false, false,
		},
		"ours, being deleted":               {object(ownedBy("cam-uid"), terminating), Claim{}, Ours, true, true},
		"our labels alone":                  {object(), Claim{}, Unowned, false, false},
		"orphaned by the controller":        {object(applied), Claim{}, Unowned, false, false},
		"orphaned, to be adopted":           {object(applied), Claim{Adopt: AdoptApplied}, Unowned, true, false},
		"orphaned, with on-conflict: adopt": {object(applied), Claim{Adopt: AdoptAny}, Unowned, true, false},
		"another parent's orphan": {
			object(label(v0.LabelInstance, "door"), applied),
			Claim{Adopt: AdoptApplied}, Unowned, false, false,
		},
		"another parent's, in a dry run": {
			object(label(v0.LabelInstance, "door"), applied),
			Claim{Adopt: AdoptAllApplied}, Unowned, true, false,
		},
		"another parent's, with take": {
			object(label(v0.LabelInstance, "door"), applied),
			Claim{Adopt: AdoptAny}, Unowned, true, false,
		},
		"another parent's, relabeled": {
			object(label(v0.LabelInstance, "door"), applied, label(v0.LabelInstance, "cam"), unmanaged(v0.LabelInstance)),
			Claim{Adopt: AdoptApplied}, Unowned, false, false,
		},
		"not applied by the controller":        {object(), Claim{Adopt: AdoptApplied}, Unowned, false, false},
		"only updated under the same manager":  {object(updated), Claim{Adopt: AdoptApplied}, Unowned, false, false},
		"our labels alone, on-conflict: adopt": {object(), Claim{Adopt: AdoptAny}, Unowned, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			test.claim.Parent = cam
			state := Read(test.object)
			if got := test.claim.Judge(state); got != test.verdict {
				t.Errorf("the verdict is %s, want %s", got, test.verdict)
			}
			if got := test.claim.Owns(state); got != test.owns {
				t.Errorf("owns: %v, want %v", got, test.owns)
			}
			if got := test.claim.Deletes(state); got != test.deletes {
				t.Errorf("deletes: %v, want %v", got, test.deletes)
			}
		})
	}
}

// Of reads the marks that Mark writes, if the controller has written them.
func TestMark(t *testing.T) {
	far := func(object *unstructured.Unstructured) { object.SetNamespace("far") }
	for name, test := range map[string]struct {
		object  *unstructured.Unstructured
		orphan  bool
		verdict Verdict
	}{
		"in the parent's namespace": {object: object(), verdict: Ours},
		"elsewhere":                 {object: object(far), verdict: Ours},
		"to be orphaned":            {object: object(), orphan: true, verdict: Unowned},
		"to be orphaned, elsewhere": {object: object(far), orphan: true, verdict: Unowned},
		"elsewhere, being deleted":  {object: object(far, terminating), verdict: Ours},
	} {
		t.Run(name, func(t *testing.T) {
			Mark(cam, test.object, test.orphan)
			applied(test.object)
			state := Read(test.object)
			if got := (Claim{Parent: cam}).Judge(state); got != test.verdict {
				t.Errorf("the verdict is %s, want %s", got, test.verdict)
			}
			if adopts := (Claim{Parent: cam, Adopt: AdoptApplied}).Owns(state); !adopts {
				t.Error("the parent does not adopt its own object")
			}
			if state.Parent != cam.ByName() {
				t.Errorf("the labels name %s, want %s", state.Parent, cam)
			}
			if orphan := test.object.GetLabels()[v0.LabelDeletionPolicy] == v0.DeletionPolicyOrphan; orphan != test.orphan {
				t.Errorf("its labels are %v", test.object.GetLabels())
			}
		})
	}
}

// unmanaged takes a label out of the controller's fields, as a client does that
// changes it.
func unmanaged(key string) func(*unstructured.Unstructured) {
	return func(object *unstructured.Unstructured) {
		labels := object.GetLabels()
		value := labels[key]
		delete(labels, key)
		object.SetLabels(labels)
		applied(object)
		label(key, value)(object)
	}
}

// An object is deleted with its parent only if garbage collection would delete it.
func TestDependent(t *testing.T) {
	second := func(object *unstructured.Unstructured) {
		object.SetOwnerReferences(append(object.GetOwnerReferences(), metav1.OwnerReference{Kind: "ConfigMap", Name: "other", UID: "other"}))
	}
	notController := func(object *unstructured.Unstructured) {
		object.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Instance", Name: "cam", UID: "cam-uid"}})
	}
	for name, test := range map[string]struct {
		object    *unstructured.Unstructured
		dependent bool
	}{
		"our owner reference":        {object(ownedBy("cam-uid")), true},
		"a second owner":             {object(ownedBy("cam-uid"), second), false},
		"our owner label":            {object(label(v0.LabelOwner, "cam-uid")), false},
		"the reference was removed":  {object(applied), false},
		"owned, but not by a parent": {object(notController), false},
	} {
		if got := Read(test.object).Dependent; got != test.dependent {
			t.Errorf("%s: dependent: %v, want %v", name, got, test.dependent)
		}
	}
}
