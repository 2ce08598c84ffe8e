package controller

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/ownership"
)

// requeueUsers requeues the Configurations with a template of an API group, in which a
// CustomResourceDefinition was created, deleted or changed, and their Instances. As long as
// nothing is known about any parent, because this replica is not the leader or has just become
// it, all of them are queued anyway.
func (m *memory) requeueUsers(ctx context.Context, cache client.Reader, apiGroup string) {
	m.mu.Lock()
	idle := len(m.records) == 0
	m.mu.Unlock()
	if idle {
		return
	}
	var configurations v0.ConfigurationList
	if cache.List(ctx, &configurations, client.UnsafeDisableDeepCopy) != nil {
		return
	}
	for i := range configurations.Items {
		configuration := &configurations.Items[i]
		used := func(kind schema.GroupVersionKind) bool { return kind.Group == apiGroup }
		if !slices.ContainsFunc(m.templates.Get(configuration).Kinds(), used) {
			continue
		}
		m.queues.add(ownership.ConfigurationParent(configuration))
		instances, _ := instancesOf(ctx, cache, client.ObjectKeyFromObject(configuration))
		for j := range instances {
			m.queues.add(ownership.InstanceParent(&instances[j]))
		}
	}
}
