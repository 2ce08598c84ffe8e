package webhook

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/kinds"
	"akri.sh/akri/controller/templates"
)

// maxInstances limits the Instances for which an update is tried.
const maxInstances = 20

// affectedInstances are the existing Instances of a Configuration, as far as they are
// tried.
type affectedInstances struct {
	names []string
	// more is set if there are more than maxInstances.
	more bool
	// properties are those that the first one will have after the update.
	properties map[string]string
}

// CacheOptions returns options for the webhook's cache. It has only
// CustomResourceDefinitions, reduced to what the checks need: how many Instances there
// are, and how large they are, is up to others.
func CacheOptions() cache.Options {
	return cache.Options{ByObject: map[client.Object]cache.ByObject{kinds.CRD(): {Transform: kinds.Trim}}}
}

// listAffected returns the Instances that an update affects. It finds them by the label that
// agents set. One without it has not been seen by an agent yet: it comes from Akri before
// agents took it over, or somebody has written it. It is not tried, though the controller
// will render the templates for it.
func (c *Chain) listAffected(ctx context.Context, r admissionRequest) (affectedInstances, []Finding) {
	var result affectedInstances
	if r.old == nil {
		return result, nil
	}
	page, err := c.rows(ctx, v0.InstanceResource, r.configuration.Namespace, metav1.IncludeNone,
		metav1.ListOptions{LabelSelector: v0.LabelConfiguration + "=" + r.configuration.Name, Limit: maxInstances})
	if err != nil {
		return result, inconclusive("spec", fmt.Sprintf("could not list the Instances: %v", err))
	}
	result.names, result.more = page.names(), page.Metadata.Continue != ""
	if len(result.names) == 0 {
		return result, nil
	}
	for _, name := range result.names { // the first one that is not being deleted
		instance, err := c.readAffected(ctx, r, name)
		if err != nil {
			return result, inconclusive("spec", fmt.Sprintf("could not read an Instance: %v", err))
		}
		if instance != nil {
			result.properties = instance.Spec.BrokerProperties
			break
		}
	}
	return result, nil
}

// readAffected returns an Instance with the properties that it will have after the update, or
// nil if it is no longer affected.
func (c *Chain) readAffected(ctx context.Context, r admissionRequest, name string) (*v0.Instance, error) {
	instance := &v0.Instance{}
	if err := c.live.Get(ctx, client.ObjectKey{Namespace: r.configuration.Namespace, Name: name}, instance); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if instance.Spec.ConfigurationName != r.configuration.Name || instance.DeletionTimestamp != nil {
		return nil, nil
	}
	instance.Spec.BrokerProperties = templates.PropertiesAfterUpdate(r.old, r.configuration, instance)
	return instance, nil
}
