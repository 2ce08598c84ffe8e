package kinds

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"
)

// catalog is what the API server serves. It does not change once it is in use.
type catalog struct {
	groups []*restmapper.APIGroupResources // in the API server's order of preference
	// failed are the API groups whose server did not answer.
	failed map[string]error
	// mapper finds the kinds of groups.
	mapper meta.RESTMapper
	began  time.Time // when the discovery began
}

// download asks the API server for all that it serves: with two requests, or with one
// for each version of each API group from servers before Kubernetes 1.27.
func download(ctx context.Context, client *discovery.DiscoveryClient) (*catalog, error) {
	groups, lists, err := discovery.ServerGroupsAndResourcesWithContext(ctx, client)
	failed, partial := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partial {
		return nil, err
	}
	return newCatalog(groups, lists, failed), nil
}

func newCatalog(groups []*metav1.APIGroup, lists []*metav1.APIResourceList, failed map[schema.GroupVersion]error) *catalog {
	c := &catalog{failed: map[string]error{}}
	for _, group := range groups {
		c.groups = append(c.groups, &restmapper.APIGroupResources{Group: *group, VersionedResources: map[string][]metav1.APIResource{}})
	}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if group := c.group(version.Group); err == nil && group != nil {
			group.VersionedResources[version.Version] = list.APIResources
		}
	}
	for version, err := range failed {
		c.failed[version.Group] = err
	}
	return c
}

// group returns an API group, or nil if it is not served.
func (c *catalog) group(name string) *restmapper.APIGroupResources {
	for _, group := range c.groups {
		if group.Group.Name == name {
			return group
		}
	}
	return nil
}

// keep adds what an older catalog has of the API groups that have not changed, and
// makes the mapper. An API server that is starting does not list everything that it
// serves, and a kind that seems to be gone is one whose objects are forgotten.
func (c *catalog) keep(older *catalog, changed func(group string) bool) {
	if older != nil {
		for _, group := range older.groups {
			if !changed(group.Group.Name) {
				c.keepGroup(group)
			}
		}
	}
	c.mapper = c.exactly()
}

func (c *catalog) keepGroup(older *restmapper.APIGroupResources) {
	group := c.group(older.Group.Name)
	if group == nil {
		c.groups = append(c.groups, older)
		return
	}
	for _, version := range older.Group.Versions {
		resources := group.VersionedResources[version.Version]
		if !slices.Contains(group.Group.Versions, version) {
			group.Group.Versions = append(slices.Clip(group.Group.Versions), version)
		}
		for _, resource := range older.VersionedResources[version.Version] {
			if !slices.ContainsFunc(resources, func(r metav1.APIResource) bool { return r.Name == resource.Name || r.Kind == resource.Kind }) {
				resources = append(slices.Clip(resources), resource)
			}
		}
		group.VersionedResources[version.Version] = resources
	}
}
