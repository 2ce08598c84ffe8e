package apply

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	v0 "akri.sh/akri/api/v0"
)

// mostFields bounds how many fields of a rival are named.
const mostFields = 3

// Rivals says who else owns fields of an object that the content sets, and which:
// "kubectl-edit (spec.replicas)". It is empty if nobody does.
func (c *Client) Rivals(ctx context.Context, resource schema.GroupVersionResource, name types.NamespacedName, content map[string]any) (string, error) {
	object, err := c.api.Resource(resource).Namespace(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read %s %s: %w", resource.GroupResource(), name, err)
	}
	ours := fieldpath.SetFromValue(value.NewValueInterface(content))
	var rivals []string
	for _, entry := range object.GetManagedFields() {
		if entry.FieldsV1 == nil || entry.Manager == v0.FieldManagerController {
			continue
		}
		var theirs fieldpath.Set
		if err := theirs.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())); err != nil {
			continue // a manager whose fields cannot be read is not named
		}
		var fields []string
		theirs.Leaves().Intersection(ours).Iterate(func(path fieldpath.Path) {
			fields = append(fields, strings.TrimPrefix(path.String(), "."))
		})
		if len(fields) == 0 {
			continue
		}
		slices.Sort(fields)
		if len(fields) > mostFields {
			fields = append(fields[:mostFields], "…")
		}
		rivals = append(rivals, fmt.Sprintf("%s (%s)", entry.Manager, strings.Join(fields, ", ")))
	}
	return strings.Join(rivals, ", "), nil
}
