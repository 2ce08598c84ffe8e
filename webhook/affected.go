package webhook

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
)

// maxInstances limits the Instances for which an update is tried.
const maxInstances = 20

// affected are the existing Instances of a Configuration.
type affected struct {
	// instances has at most maxInstances of them.
	instances []v0.Instance
	total     int
}

// affected returns the Instances that an update affects.
func (c *Chain) affected(ctx context.Context, r request) (affected, []Finding) {
	var result affected
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
				result.instances = append(result.instances, instance)
			}
		}
	}
	return result, nil
}
