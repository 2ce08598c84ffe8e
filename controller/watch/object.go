package watch

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/ready"
	"akri.sh/akri/templating/readywhen"
)

// Object is what is kept of an object in the API server.
type Object struct {
	// ObjectMeta holds name, namespace, uid, resourceVersion and
	// deletionTimestamp; the rest is empty.
	metav1.ObjectMeta
	// Parent according to the object's labels.
	Parent ownership.Parent
	// Owner is the UID of the object's controller owner, if it has one, or of the
	// parent that made it in another namespace.
	Owner types.UID
	// Fields is a digest of the set of fields that the controller owns.
	Fields string
	// Ready by the kind's standard; Reason says why not.
	Ready  bool
	Reason string
	// Judged are the verdicts of the conditions that templates have for objects
	// of this resource, by their source: empty if it holds, else why not.
	Judged map[string]string
	// Ended: it is a Pod whose containers will not run again.
	Ended bool
}

// ReadyBy is the object's readiness by a template's own condition, or by the
// kind's standard if that is nil.
func (o *Object) ReadyBy(condition *readywhen.Condition) (ready bool, reason string) {
	if condition == nil {
		return o.Ready, o.Reason
	}
	reason, judged := o.Judged[condition.String()]
	if !judged {
		reason = "not judged yet"
	}
	return reason == "", reason
}

// Trim reduces an object, which it judges by the conditions.
func Trim(full *unstructured.Unstructured, conditions ...*readywhen.Condition) *Object {
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
	}
	object.Ready, object.Reason = ready.Of(full)
	object.Ended = ready.Ended(full)
	for _, condition := range conditions {
		if object.Judged == nil {
			object.Judged = make(map[string]string, len(conditions))
		}
		object.Judged[condition.String()] = ready.By(full, condition)
	}
	return object
}

// fieldsOf is a digest of our entry in the object's managedFields. The API
// server keeps the entry byte-equal until somebody changes one of the fields in
// it, or we apply another set.
func fieldsOf(full *unstructured.Unstructured) string {
	entry := ownership.AppliedFields(full)
	if entry == nil || entry.FieldsV1 == nil {
		return ""
	}
	sum := sha256.Sum256([]byte(entry.APIVersion + string(entry.FieldsV1.GetRawBytes())))
	return hex.EncodeToString(sum[:8])
}

// trim is the informer's transform.
func (n *informer) trim(object any) (any, error) {
	switch object := object.(type) {
	case *unstructured.Unstructured:
		return Trim(object, n.conditions...), nil
	case *Object: // from a watch, which has done it already
		return object, nil
	}
	return nil, fmt.Errorf("watch: an informer of unstructured objects delivered a %T", object)
}

// differs tells whether a parent has to look at an object again.
func (o *Object) differs(other *Object) bool {
	return o.UID != other.UID || o.Fields != other.Fields || o.Owner != other.Owner ||
		o.Ready != other.Ready || o.Reason != other.Reason || o.Ended != other.Ended ||
		!maps.Equal(o.Judged, other.Judged) || o.Parent != other.Parent ||
		(o.DeletionTimestamp == nil) != (other.DeletionTimestamp == nil)
}

// newer tells whether o is of a later version than other. Objects of unequal
// UID are compared as well: one API server's versions only grow.
func (o *Object) newer(other *Object) bool {
	order, err := resourceversion.CompareResourceVersion(o.ResourceVersion, other.ResourceVersion)
	return err == nil && order > 0
}
