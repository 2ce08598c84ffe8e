package informers

import (
	"cmp"
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
// There may be tens of thousands, so it has no field for what planning does not need.
type Object struct {
	Namespace, Name string
	UID             types.UID
	ResourceVersion string
	// Parent, Confirmed, Owner and Dependent are as in [ownership.State].
	Parent    ownership.Parent
	Confirmed bool
	Owner     types.UID
	Dependent bool
	// ManagedFieldsHash is that of the set of fields that the controller owns; empty if
	// it has not applied the object.
	ManagedFieldsHash string
	// Edited reports that somebody has set list entries with kubectl.
	Edited bool
	// Ready is the verdict of the kind's standard; Reason says why not.
	Ready  bool
	Reason string
	// Terminating reports that the object is being deleted.
	Terminating bool
	// Terminated reports a Pod whose containers will not run again.
	Terminated bool
	// ours reports that the controller has applied the object, or that Parent is
	// confirmed.
	ours bool
	// judgedBy is the source of the ready-when condition that has judged the object;
	// empty if none has. verdict says why the condition does not hold.
	judgedBy, verdict string
	// values is the digest of [valuesOf], and applied that of the controller's last apply;
	// 0 if it is not known. Later versions of the object inherit applied.
	values, applied uint64
}

// Trim returns what is kept of an object that no ready-when condition judges.
func Trim(full *unstructured.Unstructured) *Object {
	object, _ := trim(full, nil, readiness.Check)
	return object
}

// unjudged is the reason of an object whose content makes the judgment panic.
const unjudged = "its readiness cannot be evaluated: the object's content is not as its kind requires"

// trim returns what is kept of an object. judge is the kind's standard. Anyone may
// write the content of an object: if reading it panics, the object is not ready.
func trim(
	full *unstructured.Unstructured, condition *readywhen.Condition, judge func(*unstructured.Unstructured) (bool, string),
) (object *Object, panicked any) {
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
		UID:             meta.UID,
		ResourceVersion: full.GetResourceVersion(),
		Terminating:     meta.DeletionTimestamp != nil,
	}
	defer func() {
		if panicked = recover(); panicked != nil {
			object.Ready, object.Reason, object.judgedBy = false, unjudged, ""
		}
	}()
	state := ownership.Read(meta)
	object.Parent, object.Confirmed = state.Parent, state.Confirmed
	object.Owner, object.Dependent = state.Owner, state.Dependent
	object.ManagedFieldsHash = fieldsOf(meta)
	object.Edited = slices.ContainsFunc(meta.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return ownership.IsEdit(entry) && ownership.HasEntries(entry)
	})
	object.ours = state.Applied || state.Confirmed
	object.values = valuesOf(full.Object, meta, time.Now())
	object.Terminated = readiness.Terminated(full)
	object.Ready, object.Reason = judge(full)
	if condition != nil {
		object.judgedBy, object.verdict = condition.String(), readiness.CheckBy(full, condition)
	}
	return object, nil
}

// ReadyBy reports whether the object is ready by a template's own condition, or by
// the kind's standard if the condition is nil. The reason is empty if it is ready.
func (o *Object) ReadyBy(condition *readywhen.Condition) (ready bool, reason string) {
	switch {
	case condition == nil:
		return o.Ready, o.Reason
	case !o.judged(condition):
		return false, "not evaluated yet"
	}
	return o.verdict == "", o.verdict
}

// judged reports whether the verdict of a condition is known.
func (o *Object) judged(condition *readywhen.Condition) bool { return o.judgedBy == condition.String() }

// Observed returns what planning needs to know about the object.
func (o *Object) Observed() plan.Observed {
	return plan.Observed{
		UID:               o.UID,
		Owner:             o.Owner,
		Parent:            o.Parent,
		Confirmed:         o.Confirmed,
		Terminating:       o.Terminating,
		ManagedFieldsHash: o.ManagedFieldsHash,
		Altered:           o.altered(),
		Edited:            o.Edited,
		Terminated:        o.Terminated,
		Reason:            o.Reason,
	}
}

// name returns the name of the object.
func (o *Object) name() types.NamespacedName {
	return types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
}

// after returns the object with what an earlier version of it says about the
// controller's last apply, and with that one's reason if its own says the same. before
// may be nil, or another object of that name.
func (o *Object) after(before *Object) *Object {
	if before == nil || o.UID != before.UID {
		return o
	}
	values, reason := cmp.Or(o.values, before.values), o.Reason
	if readiness.SameObstacle(before.Reason, reason) {
		reason = before.Reason // not worth a write
	}
	if o.values == values && o.applied == before.applied && o.Reason == reason {
		return o
	}
	later := *o
	later.values, later.applied, later.Reason = values, before.applied, reason
	return &later
}

// altered reports whether the controller's fields have other values than it has applied.
func (o *Object) altered() bool { return o.applied != 0 && o.values != 0 && o.values != o.applied }

// differs reports whether a parent that judges the object by a condition must be
// reconciled. A nil condition is the kind's standard.
func (o *Object) differs(other *Object, condition *readywhen.Condition) bool {
	if o.UID != other.UID || o.ManagedFieldsHash != other.ManagedFieldsHash ||
		o.altered() != other.altered() || o.Owner != other.Owner || o.Parent != other.Parent || o.Confirmed != other.Confirmed ||
		o.Ready != other.Ready || o.Reason != other.Reason || o.Terminated != other.Terminated ||
		o.Terminating != other.Terminating {
		return true
	}
	if condition == nil {
		return false
	}
	_, now := o.ReadyBy(condition)
	_, before := other.ReadyBy(condition)
	return now != before
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
// that borrows the controller's name, unless it is the same second ([valuesOf]).
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
