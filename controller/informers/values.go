package informers

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"akri.sh/akri/controller/ownership"
)

// fresh is for how long after an apply the values of its fields are compared: a second,
// the latency of the watch, and the difference between the API server's clock and ours.
const fresh = time.Minute

// valuesOf returns a digest of the values of the fields in the controller's entry in an
// object's managedFields, or 0 if the controller has not applied it lately.
//
// The time of an entry has whole seconds: a client that borrows the controller's name in
// the second of an apply can change values and leave the same managedFields.
func valuesOf(content map[string]any, metadata metav1.Object, now time.Time) uint64 {
	entry := ownership.AppliedFields(metadata)
	if entry == nil || entry.Time == nil || now.Sub(entry.Time.Time).Abs() > fresh { // who borrows the name chooses the time
		return 0
	}
	ours, others := &fieldpath.Set{}, []*fieldpath.Set{}
	for _, each := range metadata.GetManagedFields() {
		if each.FieldsV1 == nil {
			continue
		}
		fields := &fieldpath.Set{}
		if err := fields.FromJSON(bytes.NewReader(each.FieldsV1.GetRawBytes())); err != nil {
			return 0 // of a future format
		}
		if each.Manager == entry.Manager && each.Operation == entry.Operation && each.Subresource == entry.Subresource {
			ours = fields
		} else {
			others = append(others, fields)
		}
	}
	digest := sha256.New()
	values := json.NewEncoder(digest)
	for path := range ours.Leaves().All() {
		value, _ := ownership.ValueAt(content, path)
		if isEmpty(value) || slices.ContainsFunc(others, func(theirs *fieldpath.Set) bool { return hasBelow(theirs, path) }) {
			value = nil // applied as an empty map or list, which others fill
		}
		if err := values.Encode(value); err != nil {
			return 0
		}
	}
	return binary.BigEndian.Uint64(digest.Sum(nil))
}

// isEmpty reports whether a value is an empty map or list.
func isEmpty(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return false
}

// hasBelow reports whether a set has fields below a path.
func hasBelow(set *fieldpath.Set, path fieldpath.Path) bool {
	for _, element := range path {
		set = set.WithPrefix(element)
	}
	return !set.Empty()
}
