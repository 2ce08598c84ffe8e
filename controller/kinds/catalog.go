package kinds

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// catalog is what a discovery has found. It does not change.
type catalog struct {
	mapper *meta.DefaultRESTMapper
	// err is why the discovery failed, and failed those API groups whose server did not answer.
	err    error
	failed map[string]error
	// began is when the discovery began, and ended when it ended: who had to wait for it must not
	// find that it is too old by then.
	began, ended time.Time
}

// explain returns the error of a question about an API group. If its server did not answer, the
// kind is not unknown.
func (c *catalog) explain(group string, err error) error {
	if failed := c.failed[group]; failed != nil && meta.IsNoMatchError(err) {
		return fmt.Errorf("discover the kinds of API group %q: %w", group, failed)
	}
	return err
}

// download asks the API server for all that it serves: with two requests, or with one
// for each version of each API group from servers before Kubernetes 1.27.
func download(ctx context.Context, client *discovery.DiscoveryClient) *catalog {
	groups, lists, err := discovery.ServerGroupsAndResourcesWithContext(ctx, client)
	failed, partial := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partial {
		return &catalog{err: err}
	}
	return newCatalog(groups, lists, failed)
}

func newCatalog(groups []*metav1.APIGroup, lists []*metav1.APIResourceList, failed map[schema.GroupVersion]error) *catalog {
	var preferred []schema.GroupVersion
	for _, group := range groups {
		for _, version := range group.Versions { // the preferred one is first
			preferred = append(preferred, schema.GroupVersion{Group: group.Name, Version: version.Version})
		}
	}
	c := &catalog{mapper: meta.NewDefaultRESTMapper(preferred), failed: map[string]error{}}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		for _, resource := range list.APIResources {
			if err != nil || strings.Contains(resource.Name, "/") { // a subresource has another object's kind
				continue
			}
			scope := meta.RESTScopeRoot
			if resource.Namespaced {
				scope = meta.RESTScopeNamespace
			}
			singular := cmp.Or(resource.SingularName, strings.ToLower(resource.Kind))
			c.mapper.AddSpecific(version.WithKind(resource.Kind), version.WithResource(resource.Name), version.WithResource(singular), scope)
		}
	}
	for version, err := range failed {
		c.failed[version.Group] = err
	}
	return c
}
