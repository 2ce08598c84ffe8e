package publish

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"akri.sh/akri/agent/discover/streams"
	v0 "akri.sh/akri/api/v0"
)

// intent returns the Instance that an agent applies for a device. It has only the
// fields that the agent owns.
func intent(configuration *v0.Configuration, d streams.Device, node, name string) *v0.Instance {
	properties := map[string]string{}
	maps.Copy(properties, d.Properties)
	maps.Copy(properties, configuration.Spec.BrokerProperties)
	return &v0.Instance{
		TypeMeta: metav1.TypeMeta{APIVersion: v0.GroupVersion.String(), Kind: v0.InstanceKind.Kind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       configuration.Namespace,
			Name:            name,
			Labels:          map[string]string{v0.LabelConfiguration: configuration.Name, v0.NodeLabel(node): ""},
			Annotations:     map[string]string{v0.AnnotationDeviceID: d.ID},
			OwnerReferences: []metav1.OwnerReference{owner(configuration)},
		},
		Spec: v0.InstanceSpec{
			ConfigurationName: configuration.Name,
			CDIName:           v0.CDIName(configuration.Name, name),
			Capacity:          max(configuration.Spec.Capacity, 1),
			BrokerProperties:  properties,
			Shared:            d.Shared,
			Nodes:             []string{node},
		},
	}
}

func owner(configuration *v0.Configuration) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: v0.GroupVersion.String(), Kind: v0.ConfigurationKind.Kind,
		Name: configuration.Name, UID: configuration.UID,
		Controller: new(true), BlockOwnerDeletion: new(false),
	}
}

// following returns the intent of an agent that is not the author: the existing
// description of the device is kept. The Configuration's part is kept too, unless
// correct is true.
func following(want, have *v0.Instance, configuration *v0.Configuration, correct bool) *v0.Instance {
	followed := want.DeepCopy()
	followed.Spec.BrokerProperties = map[string]string{}
	maps.Copy(followed.Spec.BrokerProperties, have.Spec.BrokerProperties)
	if correct {
		maps.Copy(followed.Spec.BrokerProperties, configuration.Spec.BrokerProperties)
	} else {
		followed.Spec.Capacity = have.Spec.Capacity
	}
	return followed
}

// departing returns the Instance that an agent applies to leave it to the other
// nodes: the same Instance without the agent's entry and label.
func departing(have *v0.Instance) *v0.Instance {
	left := &v0.Instance{
		TypeMeta: metav1.TypeMeta{APIVersion: v0.GroupVersion.String(), Kind: v0.InstanceKind.Kind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: have.Namespace, Name: have.Name,
			UID:             have.UID, // prevents a re-creation
			Labels:          map[string]string{},
			Annotations:     map[string]string{},
			OwnerReferences: have.OwnerReferences,
		},
		Spec: *have.Spec.DeepCopy(),
	}
	copyKey(left.Labels, have.Labels, v0.LabelConfiguration)
	copyKey(left.Annotations, have.Annotations, v0.AnnotationDeviceID)
	left.Spec.Nodes, left.Spec.DeviceUsage = nil, nil
	return left
}

func copyKey(to, from map[string]string, key string) {
	if value, found := from[key]; found {
		to[key] = value
	}
}

// matches reports whether an Instance matches the desired one, apart from entries of
// other nodes.
func matches(have, want *v0.Instance) bool {
	return joined(have, want) &&
		have.Spec.ConfigurationName == want.Spec.ConfigurationName &&
		have.Spec.CDIName == want.Spec.CDIName &&
		have.Spec.Capacity == want.Spec.Capacity &&
		have.Spec.Shared == want.Spec.Shared &&
		maps.Equal(have.Spec.BrokerProperties, want.Spec.BrokerProperties)
}

// joined reports whether an Instance has this node's entry, and the labels,
// annotations and owner reference that it is found by.
func joined(have, want *v0.Instance) bool {
	if !slices.Contains(have.Spec.Nodes, want.Spec.Nodes[0]) {
		return false
	}
	for key, value := range want.Labels {
		if current, found := have.Labels[key]; !found || current != value {
			return false
		}
	}
	for key, value := range want.Annotations {
		if have.Annotations[key] != value {
			return false
		}
	}
	return slices.ContainsFunc(have.OwnerReferences, func(reference metav1.OwnerReference) bool {
		return reference.UID == want.OwnerReferences[0].UID && ptr.Deref(reference.Controller, false)
	})
}
