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
	list := &metav1.PartialObjectMetadataList{} // Instances may be large: they are read one by one
	list.SetGroupVersionKind(v0.GroupVersion.WithKind("InstanceList"))
	if err := c.live.List(ctx, list, client.InNamespace(r.configuration.Namespace),
		client.MatchingLabels{v0.LabelConfiguration: r.configuration.Name}, client.Limit(maxInstances)); err != nil {
		return result, []Finding{{Level: Inconclusive, Place: "spec", Cause: fmt.Sprintf("could not list the Instances: %v", err)}}
	}
	result.more = list.Continue != ""
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			result.names = append(result.names, list.Items[i].Name)
		}
	}
	if len(result.names) == 0 {
		return result, nil
	}
	release, err := c.reserve(ctx, r, renderingBytes)
	if err != nil {
		return result, []Finding{tooBusy(err)}
	}
	defer release()
	first, err := c.readAffected(ctx, r, result.names[0])
	if err != nil {
		return result, []Finding{{Level: Inconclusive, Place: "spec", Cause: fmt.Sprintf("could not read an Instance: %v", err)}}
	}
	if first != nil {
		result.properties = first.Spec.BrokerProperties
	}
	return result, nil
}

// readAffected returns an Instance with the properties that it will have after the update, or
// nil if it is no longer affected. The caller has reserved memory for it.
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
