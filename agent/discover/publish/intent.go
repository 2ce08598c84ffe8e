package publish

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"akri.sh/akri/agent/discover/streams"
	v0 "akri.sh/akri/api/v0"
)

// intent returns the Instance that an agent creates for a device: seen by its own node
// only, with all slots free. A free slot is not listed.
func intent(configuration *v0.Configuration, d streams.Device, node, name string) *v0.Instance {
	capacity := max(configuration.Spec.Capacity, 1)
	properties := map[string]string{}
	var paths []string
	for _, file := range d.Files {
		paths = append(paths, file.HostPath)
	}
	if len(paths) > 0 && !d.Shared { // on other nodes, they may be others
		slices.Sort(paths)
		properties[v0.PropertyDevicePaths] = strings.Join(slices.Compact(paths), ",")
	}
	maps.Copy(properties, d.Properties)
	maps.Copy(properties, configuration.Spec.BrokerProperties)
	return &v0.Instance{
		TypeMeta: metav1.TypeMeta{APIVersion: v0.GroupVersion.String(), Kind: v0.InstanceKind.Kind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   configuration.Namespace,
			Name:        name,
			Labels:      map[string]string{v0.LabelConfiguration: configuration.Name, v0.NodeLabel(node): ""},
			Annotations: map[string]string{v0.AnnotationDeviceID: d.ID},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v0.GroupVersion.String(), Kind: v0.ConfigurationKind.Kind, Name: configuration.Name, UID: configuration.UID,
				Controller: new(true), // nothing else: agents of the original Akri apply the same reference, and would conflict
			}},
		},
		Spec: v0.InstanceSpec{
			ConfigurationName: configuration.Name,
			CDIName:           v0.CDIName(configuration.Name, name),
			Capacity:          capacity,
			BrokerProperties:  properties,
			Shared:            d.Shared,
			Nodes:             []string{node},
		},
	}
}
