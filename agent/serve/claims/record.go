package claims

import (
	"strconv"

	"akri.sh/akri/agent/serve/slots"
	v0 "akri.sh/akri/api/v0"
)

// Record returns what an Instance says of its slots. It skips keys that cannot be slots
// of the Instance. A value that cannot be parsed counts as another owner.
func Record(instance *v0.Instance) slots.Record {
	record := slots.Record{
		Version:       Version(instance),
		Configuration: instance.Spec.ConfigurationName,
		Nodes:         instance.Spec.Nodes,
		Usage:         make(map[int]v0.Owner, len(instance.Spec.DeviceUsage)),
	}
	for name, value := range instance.Spec.DeviceUsage {
		slot, err := v0.ParseSlotName(instance.Name, name)
		if err != nil || slot >= v0.MaxSlots {
			continue
		}
		owner, err := v0.ParseOwner(string(value))
		if err != nil {
			owner = v0.Owner{Node: string(value)}
		}
		record.Usage[slot] = owner
	}
	return record
}

// Version returns the resourceVersion of an Instance as a number (KEP-5504), or 0 if
// it is not one.
func Version(instance *v0.Instance) uint64 {
	n, err := strconv.ParseUint(instance.ResourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
