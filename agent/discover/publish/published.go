package publish

import (
	"maps"

	"akri.sh/akri/agent/device"
	"akri.sh/akri/agent/discover/streams"
	"akri.sh/akri/agent/instances"
	v0 "akri.sh/akri/api/v0"
)

// published returns the device that the serving half offers. Its properties come
// from the Instance, so they are the same on all nodes; its mounts and device files
// are this node's.
func published(configuration *v0.Configuration, instance *v0.Instance, seen streams.Device) device.Device {
	d := adopted(configuration, instance)
	d.ID, d.Shared = seen.ID, seen.Shared
	d.Mounts, d.Files = seen.Mounts, seen.Files
	d.Online = seen.Online && instance.DeletionTimestamp == nil
	return d
}

// adopted returns the device of an Instance that no handler has reported since the agent
// started, or since the handler was lost. It is kept offline. What the Configuration says
// does not depend on the agent that wrote the Instance: its properties take precedence, and
// a higher capacity is not believed.
func adopted(configuration *v0.Configuration, instance *v0.Instance) device.Device {
	properties := make(map[string]string, len(instance.Spec.BrokerProperties))
	maps.Copy(properties, instance.Spec.BrokerProperties)
	maps.Copy(properties, configuration.Spec.BrokerProperties)
	return device.Device{
		Instance:      instances.NameOf(instance),
		Configuration: instance.Spec.ConfigurationName,
		ID:            instance.Annotations[v0.AnnotationDeviceID],
		Shared:        instance.Spec.Shared,
		Capacity:      min(instance.Spec.Capacity, max(configuration.Spec.Capacity, 1)),
		Properties:    properties,
	}
}
