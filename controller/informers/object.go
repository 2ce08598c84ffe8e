package informers

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/controller/readiness"
	"akri.sh/akri/internal/metadata"
	"akri.sh/akri/templating/readywhen"
)

// Object is the part of an object in the API server that is kept. It is immutable.
// There may be tens of thousands, so it has few fields.
type Object struct {
	Namespace, Name string
	ResourceVersion string
	// Observed is what planning needs. Reason also says why the object is not ready.
	plan.Observed
	// Ready is the verdict of the kind's standard.
	Ready bool
	// condition is the ready-when condition that has judged the object; nil if none has.
	// verdict says why it does not hold.
	condition *readywhen.Condition
	verdict   string
}

// Trim returns what is kept of an object that no ready-when condition judges.
func Trim(full *unstructured.Unstructured) *Object { return trim(full, nil) }

// unjudged is the reason of an object whose content makes the judgment panic.
const unjudged = "its readiness cannot be evaluated: the object's content is not as its kind requires"

// trim returns what is kept of an object that a condition judges, which may be nil. Anyone may
// write the content of an object: if reading it panics, the object is not ready.
func trim(full *unstructured.Unstructured, condition *readywhen.Condition) (object *Object) {
	meta := &metav1.ObjectMeta{ // each read of managed fields from an unstructured object decodes them
		UID:               full.GetUID(),
		Namespace:         full.GetNamespace(),
		Labels:            full.GetLabels(),
		OwnerReferences:   full.GetOwnerReferences(),
		DeletionTimestamp: full.GetDeletionTimestamp(),
		ManagedFields:     full.GetManagedFields(),
	}
	object = &Object{
		Namespace:       meta.Namespace,
		Name:            full.GetName(),
		ResourceVersion: full.GetResourceVersion(),
		Observed:        plan.Observed{State: ownership.State{UID: meta.UID, Terminating: meta.DeletionTimestamp != nil}},
		condition:       condition,
	}
	defer func() {
		if recover() != nil {
			object.Ready, object.Reason, object.verdict = false, unjudged, unjudged
		}
	}()
	object.State = ownership.Read(meta)
	object.ManagedFieldsHash = fieldsOf(meta)
	object.Edited = slices.ContainsFunc(meta.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return ownership.IsEdit(entry) && ownership.HasEntries(entry)
	})
	object.Terminated = readiness.Terminated(full)
	object.Ready, object.Reason = readiness.Check(full)
	if condition != nil {
		object.verdict = readiness.CheckBy(full, condition)
	}
	return object
}

// ReadyBy reports whether the object is ready by a template's own condition, or by
// the kind's standard if the condition is nil. The reason is empty if it is ready.
func (o *Object) ReadyBy(condition *readywhen.Condition) (ready bool, reason string) {
	switch {
	case condition == nil:
		return o.Ready, o.Reason
	case !o.judgedBy(condition):
		return false, "not evaluated yet"
	}
	return o.verdict == "", o.verdict
}

// judgedBy reports whether the verdict of a condition is known.
func (o *Object) judgedBy(condition *readywhen.Condition) bool {
	return o.condition != nil && o.condition.String() == condition.String()
}

// ours reports whether the controller has applied the object, or its Parent is confirmed.
func (o *Object) ours() bool { return o.Applied || o.Confirmed }

// name returns the name of the object.
func (o *Object) name() types.NamespacedName {
	return types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
}

// differs reports whether the object's parent must be reconciled.
func (o *Object) differs(other *Object) bool {
	before := other.Observed
	before.Edited, before.Dependent, before.Named = o.Edited, o.Dependent, o.Named // none of them alone changes a plan
	return o.Observed != before || o.Ready != other.Ready || o.verdict != other.verdict
}

// newer reports whether o has a later version than other. Objects of different
// UIDs are comparable: the versions of one API server only grow.
func (o *Object) newer(other *Object) bool {
	return metadata.IsNewer(o.ResourceVersion, other.ResourceVersion)
}

// Object implements runtime.Object, so that client-go's reflector accepts a list of them.
var _ runtime.Object = (*Object)(nil)

// GetObjectKind implements runtime.Object. The kind is not kept.
func (o *Object) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object.
func (o *Object) DeepCopyObject() runtime.Object { return o }

// objectList is a list of objects, from an API server that cannot send it as a watch.
type objectList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []*Object
}

// DeepCopyObject implements runtime.Object.
func (l *objectList) DeepCopyObject() runtime.Object { return l }

// fieldsOf returns a digest of the controller's entry in an object's managedFields.
// The API server keeps the entry equal until another manager changes one of its
// fields, or an apply changes the object: the entry's time then shows that of a client
// that borrows the controller's name, unless it is the same second.
func fieldsOf(object metav1.Object) string {
	entry := ownership.AppliedFields(object)
	if entry == nil || entry.FieldsV1 == nil {
		return ""
	}
	digest := sha256.New()
	digest.Write([]byte(entry.APIVersion)) // never fails
	if entry.Time != nil {
		digest.Write([]byte(entry.Time.UTC().Format(time.RFC3339)))
	}
	digest.Write(entry.FieldsV1.GetRawBytes())
	return hex.EncodeToString(digest.Sum(nil)[:8])
}
