package controller

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
)

// limitsRollouts reports whether a Configuration limits how many of its Instances a
// change makes unavailable.
func limitsRollouts(configuration *v0.Configuration) bool {
	return configuration.Spec.Rollout != nil && configuration.Spec.Rollout.MaxUnavailable != nil
}

// countMembers tells the rollout gate which Instances a Configuration has, and the delays
// how many.
func (m *parentMemory) countMembers(configuration *v0.Configuration, instances []v0.Instance) {
	m.delays.set(client.ObjectKeyFromObject(configuration), len(instances))
	if !limitsRollouts(configuration) {
		m.gate.Forget(configuration.UID)
		return
	}
	names := make([]string, len(instances))
	for i := range instances {
		names[i] = instances[i].Name
	}
	m.gate.SetInstances(configuration.UID, configuration.Namespace, names, *configuration.Spec.Rollout.MaxUnavailable)
}

// mayChange returns a function that reports whether an Instance may be changed now,
// or nil if the Configuration does not limit its rollouts.
func (m *parentMemory) mayChange(configuration *v0.Configuration, instance string) func(ready bool) bool {
	if !limitsRollouts(configuration) {
		m.gate.Forget(configuration.UID)
		return nil
	}
	limit := *configuration.Spec.Rollout.MaxUnavailable
	return func(ready bool) bool {
		m.gate.Observe(configuration.UID, instance, ready)
		return m.gate.TryAcquire(configuration.UID, instance, limit)
	}
}
