package webhook

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/kinds"
	"akri.sh/akri/controller/templates"
)

// maxInstances limits the Instances for which an update is tried.
const maxInstances = 20

// affectedInstances are the existing Instances of a Configuration.
type affectedInstances struct {
	// instances has at most maxInstances of them, with the properties that they will
	// have after the update.
	instances []v0.Instance
	total     int
}

// CacheOptions returns options for the cache that [Options.Instances] reads. It keeps only
// what the checks need of Instances and CustomResourceDefinitions.
func CacheOptions() cache.Options {
	return cache.Options{ByObject: map[client.Object]cache.ByObject{
		kinds.CRD(): {Transform: kinds.Trim},
		&v0.Instance{}: {Transform: func(object any) (any, error) {
			if instance, ok := object.(*v0.Instance); ok {
				instance.ManagedFields, instance.Annotations = nil, nil
				instance.Spec.DeviceUsage, instance.Status.Conditions = nil, nil
			}
			return object, nil
		}},
	}}
}

// listAffected returns the Instances that an update affects.
func (c *Chain) listAffected(ctx context.Context, r admissionRequest) (affectedInstances, []Finding) {
	var result affectedInstances
	if r.old == nil {
		return result, nil
	}
	var list v0.InstanceList
	if err := c.instances.List(ctx, &list, client.InNamespace(r.configuration.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return result, []Finding{{Level: Inconclusive, Place: "spec", Cause: fmt.Sprintf("could not list the Instances: %v", err)}}
	}
	for i := range list.Items {
		if instance := list.Items[i]; instance.Spec.ConfigurationName == r.configuration.Name && instance.DeletionTimestamp == nil {
			if result.total++; len(result.instances) < maxInstances {
				instance.Spec.BrokerProperties = templates.PropertiesAfterUpdate(r.old, r.configuration, &instance)
				result.instances = append(result.instances, instance)
			}
		}
	}
	return result, nil
}
