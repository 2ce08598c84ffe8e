package publish

import (
	"slices"
	"strings"

	v0 "akri.sh/akri/api/v0"
)

// operation is one of a JSON Patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

const usagePath = "/spec/deviceUsage"

// slotPatch lists the free slots of an Instance explicitly, and no slot beyond
// its capacity that is free. It is empty if there is nothing to do. Each change
// is bound to the slot's being as read, so a claim is never undone.
func slotPatch(have *v0.Instance) []operation {
	usage := have.Spec.DeviceUsage
	capacity := int(have.Spec.Capacity)
	if len(usage) == 0 {
		if capacity == 0 {
			return nil
		}
		free := map[string]v0.SlotOwner{}
		for slot := range capacity {
			free[v0.SlotName(have.Name, slot)] = ""
		}
		return []operation{{"test", usagePath, usageAsRead(usage)}, {"add", usagePath, free}}
	}
	var patch []operation
	for slot := range capacity {
		name := v0.SlotName(have.Name, slot)
		if _, listed := usage[name]; !listed {
			path := slotPath(name)
			patch = append(patch, operation{"test", path, nil}, operation{"add", path, ""})
		}
	}
	var beyond []string
	for name, owner := range usage {
		if slot, err := v0.ParseSlotName(have.Name, name); owner == "" && (err != nil || slot >= capacity) {
			beyond = append(beyond, name)
		}
	}
	slices.Sort(beyond)
	for _, name := range beyond {
		path := slotPath(name)
		patch = append(patch, operation{"test", path, ""}, operation{"remove", path, nil})
	}
	return patch
}

// usageAsRead is null for a missing map and {} for an empty one.
func usageAsRead(usage map[string]v0.SlotOwner) any {
	if usage == nil {
		return nil
	}
	return usage
}

func slotPath(name string) string { return usagePath + "/" + pointer(name) }

// pointer escapes a key for a JSON Pointer.
func pointer(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}
