package claims

import (
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"akri.sh/akri/agent/serve/slots"
	v0 "akri.sh/akri/api/v0"
)

// Record reads the owners of the slots out of an Instance. Keys that are not
// slots of the Instance are left out; a value that nobody understands counts as
// a foreign owner.
func Record(instance *v0.Instance) slots.Record {
	return observed(instance).record(instance.Name)
}

// Version reads a resource version as the number that it is (KEP-5504: versions
// of one resource type can be compared).
func Version(instance *v0.Instance) uint64 { return number(instance.ResourceVersion) }

func observed(instance *v0.Instance) raw {
	usage := make(map[string]string, len(instance.Spec.DeviceUsage))
	for slot, owner := range instance.Spec.DeviceUsage {
		usage[slot] = string(owner)
	}
	return raw{version: instance.ResourceVersion, present: instance.Spec.DeviceUsage != nil, usage: usage}
}

func number(version string) uint64 {
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func read(instance *unstructured.Unstructured) raw {
	usage, present, err := unstructured.NestedStringMap(instance.Object, "spec", "deviceUsage")
	if err != nil { // not a map of strings: the schema forbids it
		usage, present = nil, true
	}
	return raw{version: instance.GetResourceVersion(), present: present, usage: usage}
}

func (r raw) record(instance string) slots.Record {
	record := slots.Record{Version: number(r.version), Usage: make(map[int]v0.Owner, len(r.usage))}
	for name, value := range r.usage {
		slot, err := v0.ParseSlotName(instance, name)
		if err != nil {
			continue
		}
		owner, err := v0.ParseOwner(value)
		if err != nil {
			owner = v0.Owner{Node: value}
		}
		record.Usage[slot] = owner
	}
	return record
}
