package apply

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/ownership"
)

// maxFields bounds how many fields of a manager are named.
const maxFields = 3

// Managers returns the other field managers that own fields which the content sets,
// or have added entries to its lists, with these fields, as in "kubectl-edit
// (spec.replicas)". It returns "" if there is none.
func (c *Client) Managers(
	ctx context.Context, resource schema.GroupVersionResource, name types.NamespacedName, content map[string]any,
) (string, error) {
	var found string
	err := c.read(ctx, resource, name, func(object *unstructured.Unstructured) { found = managersOf(object, content) })
	if err != nil {
		return "", fmt.Errorf("read %s %s: %w", resource.GroupResource(), name, err)
	}
	return found, nil
}

// managersOf returns the managers of an object as [Client.Managers] does.
func managersOf(object *unstructured.Unstructured, content map[string]any) string {
	ours := fieldpath.SetFromValue(value.NewValueInterface(content))
	var managers []string
	for _, entry := range object.GetManagedFields() {
		if entry.FieldsV1 == nil || entry.Manager == v0.FieldManagerController {
			continue
		}
		var theirs fieldpath.Set
		if err := theirs.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())); err != nil {
			continue // its fields cannot be read
		}
		shared := theirs.Leaves().Intersection(ours)
		if entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == "" {
			shared = shared.Union(ownership.EntriesIn(content, &theirs))
		}
		var fields []string
		shared.Iterate(func(path fieldpath.Path) { fields = append(fields, strings.TrimPrefix(path.String(), ".")) })
		if len(fields) == 0 {
			continue
		}
		if len(fields) > maxFields {
			fields = append(fields[:maxFields], "…")
		}
		managers = append(managers, fmt.Sprintf("%s (%s)", entry.Manager, strings.Join(fields, ", ")))
	}
	return strings.Join(managers, ", ")
}
