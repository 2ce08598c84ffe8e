package plan

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Served returns the mapping of the kind of an existing object: in the version in which
// it was applied, or in another one if that is no longer served. A NoMatch error means that
// the API server serves no version of the kind, and therefore has no objects of it.
func Served(mapper meta.RESTMapper, kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return mapper.RESTMapping(kind.GroupKind())
	}
	return mapping, err
}
