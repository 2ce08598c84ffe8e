package informers

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/controller/readiness"
	"akri.sh/akri/templating/readywhen"
)

// Object is the part of an object in the API server that is kept. It is immutable.
type Object struct {
	// ObjectMeta holds name, namespace, uid, resourceVersion and
	// deletionTimestamp; the rest is empty.
	metav1.ObjectMeta
	// Parent and Owner are as in [ownership.State].
	Parent ownership.Parent
	Owner  types.UID
	// Fields is a digest of the set of fields that the controller owns; empty if it
	// has not applied the object.
	Fields string
	// Ready is the verdict of the kind's standard; Reason says why not.
	Ready  bool
	Reason string
	// Ended reports a Pod whose containers will not run again.
	Ended bool
	// content is the object without its managed fields, for ready-when conditions;
	// nil if no condition judges objects of the resource.
	content map[string]any
}

// Trim returns what is kept of an object that no ready-when condition judges.
func Trim(full *unstructured.Unstructured) *Object {
	state := ownership.Of(full)
	object := &Object{
		ObjectMeta: metav1.ObjectMeta{
			Name:              full.GetName(),
			Namespace:         full.GetNamespace(),
			UID:               full.GetUID(),
			ResourceVersion:   full.GetResourceVersion(),
			DeletionTimestamp: full.GetDeletionTimestamp(),
		},
		Parent: state.Parent,
		Owner:  state.Owner,
		Fields: fieldsOf(full),
		Ended:  readiness.Ended(full),
	}
	object.Ready, object.Reason = readiness.Of(full)
	return object
}

// trimWithContent returns what is kept of an object that a ready-when condition
// may judge. The content of an object that the controller has not applied is not
// kept: anyone can put the controller's label on an object.
func trimWithContent(full *unstructured.Unstructured) *Object {
	object := Trim(full)
	if object.Fields == "" {
		return object
	}
	object.content = maps.Clone(full.Object)
	if metadata, ok := object.content["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "managedFields")
		object.content["metadata"] = metadata
	}
	return object
}

// ReadyBy reports whether the object is ready by a template's own condition, or by
// the kind's standard if the condition is nil. The reason is empty if it is ready.
func (o *Object) ReadyBy(condition *readywhen.Condition) (ready bool, reason string) {
	if condition == nil {
		return o.Ready, o.Reason
	}
	if o.content == nil {
		return false, "not judged yet"
	}
	reason = readiness.By(&unstructured.Unstructured{Object: o.content}, condition)
	return reason == "", reason
}

// Observed returns what planning needs to know about the object.
func (o *Object) Observed() plan.Observed {
	return plan.Observed{
		UID:         o.UID,
		Owner:       o.Owner,
		Parent:      o.Parent,
		Terminating: o.DeletionTimestamp != nil,
		Fields:      o.Fields,
		Ended:       o.Ended,
		Reason:      o.Reason,
	}
}

// name returns the name of the object.
func (o *Object) name() types.NamespacedName {
	return types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
}

// differs reports whether a parent that judges the object by a condition must be
// reconciled. A nil condition is the kind's standard.
func (o *Object) differs(other *Object, condition *readywhen.Condition) bool {
	if o.UID != other.UID || o.Fields != other.Fields || o.Owner != other.Owner || o.Parent != other.Parent ||
		o.Ready != other.Ready || o.Reason != other.Reason || o.Ended != other.Ended ||
		(o.DeletionTimestamp == nil) != (other.DeletionTimestamp == nil) {
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
	order, err := resourceversion.CompareResourceVersion(o.ResourceVersion, other.ResourceVersion)
	return err == nil && order > 0
}

// Object implements runtime.Object because client-go's reflector requires it.
var _ runtime.Object = (*Object)(nil)

// GetObjectKind implements runtime.Object. The kind is not kept.
func (o *Object) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object.
func (o *Object) DeepCopyObject() runtime.Object { return o }

// fieldsOf returns a digest of the controller's entry in an object's
// managedFields. The API server keeps the entry byte-equal until another manager
// changes one of its fields or the controller applies another set.
func fieldsOf(full *unstructured.Unstructured) string {
	entry := ownership.AppliedFields(full)
	if entry == nil || entry.FieldsV1 == nil {
		return ""
	}
	sum := sha256.Sum256([]byte(entry.APIVersion + string(entry.FieldsV1.GetRawBytes())))
	return hex.EncodeToString(sum[:8])
}

// transform is the informer's transform function.
func (n *informer) transform(object any) (any, error) {
	switch object := object.(type) {
	case *unstructured.Unstructured:
		return n.trim(object), nil
	case *Object: // trimmed by the decoder of a watch
		return object, nil
	}
	return nil, fmt.Errorf("watch: an informer of unstructured objects delivered a %T", object)
}

// trim returns what the informer keeps of an object.
func (n *informer) trim(full *unstructured.Unstructured) *Object {
	if n.keepsContent {
		return trimWithContent(full)
	}
	return Trim(full)
}
