package controller

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/templating"
)

// reconciled records that an Instance was reconciled for the present generation of its
// Configuration, and has the conditions of that pass. The first time, it requeues the
// group, because an Instance that has not changed causes no event.
func (m *parentMemory) reconciled(instance ownership.Parent, configuration *v0.Configuration) {
	m.mu.Lock()
	last := m.seen[instance.ByName()]
	first := last.uid == instance.UID && last.generation != configuration.Generation
	if first {
		last.generation = configuration.Generation
		m.seen[instance.ByName()] = last
	}
	m.mu.Unlock()
	if first {
		group := types.NamespacedName{Namespace: configuration.Namespace, Name: configuration.Name}
		m.queues.addAfter(ownership.Parent{Level: templating.ConfigurationLevel, NamespacedName: group}, m.delays.delay(group))
	}
}

// late returns how many Instances have not been reconciled since their Configuration was
// edited: their conditions are about earlier templates. It replaces the statuses of the
// Instances with those that were written last, which the informer cache may not have yet.
// stored is the status of the Configuration. If it reports this generation as ready, the
// Instances that this process has not seen yet were reconciled before it started.
func (m *parentMemory) late(configuration *v0.Configuration, stored v0.ConfigurationStatus, instances []v0.Instance) int {
	wasReady := stored.ObservedGeneration == configuration.Generation && meta.IsStatusConditionTrue(stored.Conditions, v0.ConditionReady)
	count := 0
	for i := range instances {
		instance := &instances[i]
		instance.Status, _, _ = m.instances.latest(instance, instance.Status)
		m.mu.Lock()
		last := m.seen[ownership.InstanceParent(instance).ByName()]
		m.mu.Unlock()
		known := last.uid == instance.UID && last.configuration == configuration.UID && last.generation != 0
		if known && last.generation != configuration.Generation || !known && !wasReady {
			count++
		}
	}
	return count
}
