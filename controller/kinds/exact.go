package kinds

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/restmapper"
)

// exact maps a kind only as it is spelled. client-go's mapper also knows kinds in lower
// case and kinds of lists, which the API server rejects in objects: they would be a
// second name for a kind, in permissions and policies.
//
// It remembers the mappings that it has found, because client-go's mapper asks those of
// all API groups each time: that was half of what a reconcile allocated. Only kinds that
// are served are remembered.
type exact struct {
	meta.RESTMapper
	kinds map[schema.GroupVersionKind]bool
	found *sync.Map // *meta.RESTMapping by schema.GroupVersionKind; the version may be empty
}

// exactly returns a mapper of the catalog's kinds.
func (c *catalog) exactly() exact {
	kinds := map[schema.GroupVersionKind]bool{}
	for _, group := range c.groups {
		for version, resources := range group.VersionedResources {
			for _, resource := range resources {
				if !strings.Contains(resource.Name, "/") { // a subresource has another object's kind
					kinds[schema.GroupVersionKind{Group: group.Group.Name, Version: version, Kind: resource.Kind}] = true
				}
			}
		}
	}
	return exact{restmapper.NewDiscoveryRESTMapper(c.groups), kinds, &sync.Map{}}
}

// RESTMapping implements meta.RESTMapper. The caller must not change the mapping.
func (e exact) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if len(versions) != 1 {
		return e.find(kind, versions...)
	}
	wanted := kind.WithVersion(versions[0])
	if known, ok := e.found.Load(wanted); ok {
		return known.(*meta.RESTMapping), nil
	}
	mapping, err := e.find(kind, versions...)
	if err == nil {
		e.found.Store(wanted, mapping)
	}
	return mapping, err
}

func (e exact) find(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mapping, err := e.RESTMapper.RESTMapping(kind, versions...)
	if err == nil && !e.kinds[mapping.GroupVersionKind] {
		return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
	}
	return mapping, err
}

// RESTMappings implements meta.RESTMapper.
func (e exact) RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	mappings, err := e.RESTMapper.RESTMappings(kind, versions...)
	mappings = slices.DeleteFunc(mappings, func(mapping *meta.RESTMapping) bool { return !e.kinds[mapping.GroupVersionKind] })
	if err == nil && len(mappings) == 0 {
		return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
	}
	return mappings, err
}
