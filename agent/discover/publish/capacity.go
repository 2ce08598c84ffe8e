package publish

import (
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/jsonpatch"
	"akri.sh/akri/internal/usagepatch"
)

// slotPatch returns the patch that lists the free slots of an Instance explicitly
// and removes free slots beyond its capacity. It is empty if there is nothing to
// change.
func slotPatch(have *v0.Instance) jsonpatch.Patch {
	usage, capacity := have.Spec.DeviceUsage, int(have.Spec.Capacity)
	free := map[string]v0.SlotOwner{}
	for slot := range capacity {
		if name := v0.SlotName(have.Name, slot); !listed(usage, name) {
			free[name] = ""
		}
	}
	var beyond []string
	for name, owner := range usage {
		if slot, err := v0.ParseSlotName(have.Name, name); owner == "" && (err != nil || slot >= capacity) {
			beyond = append(beyond, name)
		}
	}
	return append(usagepatch.Set(usage, free), usagepatch.Remove(usage, beyond)...)
}

func listed(usage map[string]v0.SlotOwner, name string) bool {
	_, found := usage[name]
	return found
}
