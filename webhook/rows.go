package webhook

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// rowPage is a page of objects as the rows of a [metav1.Table], reduced to what the checks read.
type rowPage struct {
	Metadata metav1.ListMeta `json:"metadata"`
	Rows     []struct {
		Cells  []any `json:"cells"`
		Object struct {
			Metadata struct {
				DeletionTimestamp *metav1.Time `json:"deletionTimestamp"`
			} `json:"metadata"`
		} `json:"object"`
	} `json:"rows"`
}

// rows returns a page of the objects of a resource in a namespace, or in all if it is empty. A
// row has the object's metadata only if include says so: others choose its size.
func (c *cluster) rows(
	ctx context.Context, resource schema.GroupVersionResource, namespace string, include metav1.IncludeObjectPolicy,
	options metav1.ListOptions,
) (*rowPage, error) {
	answer, err := c.api.Get().
		AbsPath("apis", resource.Group, resource.Version).Namespace(namespace).Resource(resource.Resource).
		SetHeader("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").
		Param("includeObject", string(include)).
		SpecificallyVersionedParams(&options, metav1.ParameterCodec, schema.GroupVersion{Version: "v1"}).
		DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", resource.GroupResource(), err)
	}
	page := &rowPage{}
	if err := json.Unmarshal(answer, page); err != nil {
		return nil, fmt.Errorf("list %s: %w", resource.GroupResource(), err)
	}
	return page, nil
}

// names returns the names of the objects: they are the first column of every kind.
func (p *rowPage) names() []string {
	names := make([]string, 0, len(p.Rows))
	for _, row := range p.Rows {
		if len(row.Cells) > 0 {
			if name, ok := row.Cells[0].(string); ok {
				names = append(names, name)
			}
		}
	}
	return names
}
