package templates

import (
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/templating"
)

// InstanceValues returns the values with which a Configuration's instance-level
// templates are rendered for one of its Instances.
func InstanceValues(configuration *v0.Configuration, instance *v0.Instance) templating.Values {
	values := valuesOf(configuration)
	values.Instance = valuesOfInstance(instance)
	return values
}

// GroupValues returns the values with which a Configuration's configuration-level
// templates are rendered.
func GroupValues(configuration *v0.Configuration, instances []v0.Instance) templating.Values {
	values := valuesOf(configuration)
	for i := range instances {
		values.Instances = append(values.Instances, valuesOfInstance(&instances[i]))
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

func valuesOfInstance(instance *v0.Instance) templating.Instance {
	return templating.Instance{
		Name:       instance.Name,
		Properties: instance.Spec.BrokerProperties,
		Nodes:      instance.Spec.Nodes,
		Shared:     instance.Spec.Shared,
	}
}
