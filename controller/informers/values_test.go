package informers

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
)

// deployment returns a version of an object that the controller applied at a time, with a
// container, a selector, which is replaced as a whole, and annotations that others fill.
func deployment(version int, image, app string, at time.Time, annotations map[string]any) *unstructured.Unstructured {
	object := labelled("d", version, owned)
	object.Object["spec"] = map[string]any{
		"selector":   map[string]any{"app": app},
		"containers": []any{map[string]any{"name": "sidecar", "image": "theirs"}, map[string]any{"name": "main", "image": image}},
	}
	object.Object["metadata"].(map[string]any)["annotations"] = annotations
	entry := func(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: operation, FieldsV1: metav1.NewFieldsV1(fields), Time: &metav1.Time{Time: at},
		}
	}
	fields := []metav1.ManagedFieldsEntry{entry(v0.FieldManagerController, metav1.ManagedFieldsOperationApply,
		`{"f:metadata":{"f:annotations":{}},`+
			`"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:image":{},"f:name":{}}},"f:selector":{}}}`)}
	if len(annotations) > 0 {
		fields = append(fields, entry("other", metav1.ManagedFieldsOperationUpdate, `{"f:metadata":{"f:annotations":{"f:x":{}}}}`))
	}
	object.SetManagedFields(fields)
	return object
}

// In the second of an apply, a client with the controller's name leaves the same managed
// fields. What the controller has applied is then told by its values.
func TestValuesAreCompared(t *testing.T) {
	name := types.NamespacedName{Namespace: "ns", Name: "d"}
	now := time.Now()
	const long = 10 * fresh
	for title, tc := range map[string]struct {
		later   *unstructured.Unstructured
		altered bool
	}{
		"nothing":                     {deployment(6, "v1", "a", now, nil), false},
		"a field of a list entry":     {deployment(6, "v2", "a", now, nil), true},
		"a map that is one value":     {deployment(6, "v1", "b", now, nil), true},
		"others fill an empty map":    {deployment(6, "v1", "a", now, map[string]any{"x": "y"}), false},
		"that is known by its time":   {deployment(6, "v2", "a", now.Add(-long), nil), false},
		"both, in an empty map, too":  {deployment(6, "v2", "a", now, map[string]any{"x": "y"}), true},
		"the same, in another second": {deployment(6, "v1", "a", now.Add(time.Second), nil), false},
	} {
		for order, watchIsFirst := range map[string]bool{"answer first": false, "event first": true} {
			t.Run(title+", "+order, func(t *testing.T) {
				s, notified := memoryStore()
				must(t, s.Replace(nil, "4"))
				answer := trim(deployment(5, "v1", "a", now, nil), nil)
				if !watchIsFirst {
					s.record(answer, true)
				}
				must(t, s.Add(deployment(5, "v1", "a", now, nil)))
				must(t, s.Update(tc.later))
				if watchIsFirst {
					*notified = nil
					s.record(answer, true)
				}
				object, found := s.get(name)
				if !found || object.ResourceVersion != "6" || object.Altered != tc.altered {
					t.Fatalf("seen as %+v", object)
				}
				if tc.altered && len(*notified) != 1 {
					t.Errorf("notified %v", *notified)
				}
				// That is not forgotten with the next event, whenever it comes, but with the repair.
				must(t, s.Update(tc.later))
				if object, _ := s.get(name); object.Altered != tc.altered {
					t.Error("forgotten with the next event")
				}
				s.record(trim(deployment(7, "v1", "a", now.Add(-long), nil), nil), true)
				must(t, s.Update(deployment(7, "v1", "a", now.Add(-long), nil)))
				if object, _ := s.get(name); object.Altered {
					t.Error("not forgotten after the repair")
				}
			})
		}
	}
}

// After a start nothing is known of earlier applies, and nothing is taken for a change.
func TestValuesAfterAStart(t *testing.T) {
	s, notified := memoryStore()
	now := time.Now()
	must(t, s.Replace([]any{deployment(5, "v1", "a", now, nil)}, "5"))
	*notified = nil
	must(t, s.Update(deployment(6, "v2", "a", now, nil)))
	if object, _ := s.get(types.NamespacedName{Namespace: "ns", Name: "d"}); object.Altered || len(*notified) != 0 {
		t.Errorf("seen as %+v, notified %v", object, *notified)
	}
}
