package publish

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/agent/device"
	"akri.sh/akri/agent/discover/streams"
	"akri.sh/akri/agent/instances"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/jsonpatch"
)

// published returns the device that the serving half offers. Its properties come
// from the Instance, so they are the same on all nodes; its mounts and device files
// are this node's.
func published(instance *v0.Instance, known streams.Known) device.Device {
	d := adopted(instance)
	d.ID, d.Shared = known.ID, known.Shared
	d.Mounts, d.Files = known.Mounts, known.Files
	d.Online = known.Online && instance.DeletionTimestamp == nil
	return d
}

// adopted returns the device of an Instance that no handler has reported since the
// agent started. It is kept offline.
func adopted(instance *v0.Instance) device.Device {
	return device.Device{
		Instance:      instances.NameOf(instance),
		Configuration: instance.Spec.ConfigurationName,
		ID:            instance.Annotations[v0.AnnotationDeviceID],
		Shared:        instance.Spec.Shared,
		Capacity:      instance.Spec.Capacity,
		Properties:    maps.Clone(instance.Spec.BrokerProperties),
	}
}

// removeExtra returns the patch that removes undesired properties. An apply does not
// remove fields of other field managers.
func removeExtra(have, want *v0.Instance) jsonpatch.Patch {
	var patch jsonpatch.Patch
	for _, key := range slices.Sorted(maps.Keys(have.Spec.BrokerProperties)) {
		if _, wanted := want.Spec.BrokerProperties[key]; !wanted {
			patch = append(patch, jsonpatch.Remove(jsonpatch.Pointer("spec", "brokerProperties", key)))
		}
	}
	return patch
}

func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
