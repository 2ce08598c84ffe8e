package templates

import (
	"maps"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/templating"
)

// InstanceValues returns the values with which a Configuration's instance-level
// templates are rendered for one of its Instances.
func InstanceValues(configuration *v0.Configuration, instance *v0.Instance) templating.Values {
	values := valuesOf(configuration)
	values.Instance = valuesOfInstance(configuration, instance)
	return values
}

// GroupValues returns the values with which a Configuration's configuration-level
// templates are rendered.
func GroupValues(configuration *v0.Configuration, instances []v0.Instance) templating.Values {
	values := valuesOf(configuration)
	for i := range instances {
		values.Instances = append(values.Instances, valuesOfInstance(configuration, &instances[i]))
	}
	return values
}

func valuesOf(configuration *v0.Configuration) templating.Values {
	return templating.Values{
		Configuration: configuration.Name,
		Namespace:     configuration.Namespace,
		Capacity:      int64(configuration.Spec.Capacity),
	}
}

func valuesOfInstance(configuration *v0.Configuration, instance *v0.Instance) templating.Instance {
	return templating.Instance{
		Name:       instance.Name,
		Properties: propertiesOf(configuration, instance),
		Nodes:      instance.Spec.Nodes,
		Shared:     instance.Spec.Shared,
	}
}

// PropertiesAfterUpdate returns the properties that an Instance will have once the agents
// have seen an update of its Configuration. Those that only the old Configuration set are
// removed: whether the device has a property of the same name is not known. The old
// Configuration is nil if there is none.
func PropertiesAfterUpdate(before, after *v0.Configuration, instance *v0.Instance) map[string]string {
	properties := maps.Clone(instance.Spec.BrokerProperties)
	if properties == nil {
		properties = map[string]string{}
	}
	if before != nil {
		maps.DeleteFunc(properties, func(name, value string) bool {
			set, found := before.Spec.BrokerProperties[name]
			return found && set == value
		})
	}
	maps.Copy(properties, after.Spec.BrokerProperties)
	return properties
}

// propertiesOf returns the properties of an Instance. Those that the Configuration sets
// take precedence, whatever the agent that wrote the Instance made of them.
func propertiesOf(configuration *v0.Configuration, instance *v0.Instance) map[string]string {
	for name, value := range configuration.Spec.BrokerProperties {
		if written, found := instance.Spec.BrokerProperties[name]; !found || written != value {
			return PropertiesAfterUpdate(nil, configuration, instance)
		}
	}
	return instance.Spec.BrokerProperties // shared with the cache: rendering does not change it
}
