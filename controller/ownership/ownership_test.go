package ownership

import (
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

func ownedBy(uid types.UID) func(*unstructured.Unstructured) {
	return func(object *unstructured.Unstructured) {
		object.SetOwnerReferences(
			[]metav1.OwnerReference{{APIVersion: "akri.sh/v0", Kind: "Instance", Name: "cam", UID: uid, Controller: new(true)}},
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

func applied(object *unstructured.Unstructured) {
	object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: v0.FieldManagerController, Operation: metav1.ManagedFieldsOperationApply}})
}

func updated(object *unstructured.Unstructured) {
	object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: v0.FieldManagerController, Operation: metav1.ManagedFieldsOperationUpdate}})
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
	}{
		"our owner reference":                 {object(ownedBy("cam-uid")), Claim{}, Ours, true},
		"our owner label, in another place":   {object(label(v0.LabelOwner, "cam-uid")), Claim{}, Ours, true},
		"in the inventory, reference removed": {object(), Claim{Applied: "1"}, Ours, true},
		"in the inventory, another's now":     {object(ownedBy("other")), Claim{Applied: "1"}, Ours, true},
		"not the object in the inventory":     {object(), Claim{Applied: "2"}, Unowned, false},
		"another's owner reference":           {object(ownedBy("other")), Claim{Adopt: AdoptAny}, Foreign, false},
		"another's owner label":               {object(label(v0.LabelOwner, "other")), Claim{Adopt: AdoptAny}, Foreign, false},
		"the reference counts, not the label": {object(ownedBy("other"), label(v0.LabelOwner, "cam-uid")), Claim{}, Foreign, false},
		"the former parent's":                 {object(ownedBy("former")), Claim{}, Foreign, false},
		"the former parent's, being deleted":  {object(ownedBy("former"), terminating), Claim{Adopt: AdoptAny}, Former, false},
		"another parent's, being deleted":     {object(ownedBy("other"), label(v0.LabelInstance, "door"), terminating), Claim{}, Foreign, false},
		"ours, being deleted":                 {object(ownedBy("cam-uid"), terminating), Claim{}, Ours, true},
		"our labels alone":                    {object(), Claim{}, Unowned, false},
		"orphaned by the controller":          {object(applied), Claim{}, Unowned, false},
		"orphaned, to be adopted":             {object(applied), Claim{Adopt: AdoptApplied}, Unowned, true},
		"orphaned, with on-conflict: take":    {object(applied), Claim{Adopt: AdoptAny}, Unowned, true},
		"not applied by the controller":       {object(), Claim{Adopt: AdoptApplied}, Unowned, false},
		"only updated under the same manager": {object(updated), Claim{Adopt: AdoptApplied}, Unowned, false},
		"our labels alone, on-conflict: take": {object(), Claim{Adopt: AdoptAny}, Unowned, true},
	} {
		t.Run(name, func(t *testing.T) {
			test.claim.Parent = cam
			state := Of(test.object)
			if got := test.claim.Judge(state); got != test.verdict {
				t.Errorf("the verdict is %s, want %s", got, test.verdict)
			}
			if got := test.claim.Owns(state); got != test.owns {
				t.Errorf("owns: %v, want %v", got, test.owns)
			}
		})
	}
}

// Of reads the marks that Mark writes.
func TestMark(t *testing.T) {
	far := func(object *unstructured.Unstructured) { object.SetNamespace("far") }
	for name, test := range map[string]struct {
		object  *unstructured.Unstructured
		orphan  bool
		verdict Verdict
		suspect bool // only its parent would remove it
	}{
		"in the parent's namespace":   {object: object(applied), verdict: Ours},
		"elsewhere":                   {object: object(applied, far), verdict: Ours, suspect: true},
		"to be orphaned":              {object: object(applied), orphan: true, verdict: Unowned, suspect: true},
		"to be orphaned, elsewhere":   {object: object(applied, far), orphan: true, verdict: Unowned, suspect: true},
		"elsewhere, being deleted":    {object: object(applied, far, terminating), verdict: Ours},
		"elsewhere, not yet applied":  {object: object(far), verdict: Ours},
		"to be orphaned, not applied": {object: object(), orphan: true, verdict: Unowned},
	} {
		t.Run(name, func(t *testing.T) {
			Mark(cam, test.object, test.orphan)
			state := Of(test.object)
			if got := (Claim{Parent: cam}).Judge(state); got != test.verdict {
				t.Errorf("the verdict is %s, want %s", got, test.verdict)
			}
			if state.Parent != cam.ByName() {
				t.Errorf("the labels name %s, want %s", state.Parent, cam)
			}
			if got := Suspect(test.object); got != test.suspect {
				t.Errorf("suspect: %v, want %v", got, test.suspect)
			}
			if orphan := test.object.GetLabels()[v0.LabelDeletionPolicy] == v0.DeletionPolicyOrphan; orphan != test.orphan {
				t.Errorf("its labels are %v", test.object.GetLabels())
			}
		})
	}
}
