package usagepatch

import (
	"maps"
	"slices"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/jsonpatch"
)

const path = "/spec/deviceUsage"

// Set returns the operations that give slots the owners in to; "" is a free slot.
// usage is deviceUsage as read. A slot may be absent or "", and the whole field
// may be absent: all mean free, but a patch must distinguish them.
func Set(usage, to map[string]v0.SlotOwner) jsonpatch.Patch {
	if len(to) == 0 {
		return nil
	}
	if usage == nil {
		return jsonpatch.Patch{jsonpatch.Test(path, nil), jsonpatch.Add(path, to)}
	}
	var patch jsonpatch.Patch
	for _, slot := range slices.Sorted(maps.Keys(to)) {
		at := path + jsonpatch.Pointer(slot)
		if owner, found := usage[slot]; found {
			patch = append(patch, jsonpatch.Test(at, owner), jsonpatch.Replace(at, to[slot]))
		} else {
			patch = append(patch, jsonpatch.Test(at, nil), jsonpatch.Add(at, to[slot]))
		}
	}
	return patch
}

// Remove returns the operations that remove slots, which must be in usage.
func Remove(usage map[string]v0.SlotOwner, slots []string) jsonpatch.Patch {
	var patch jsonpatch.Patch
	for _, slot := range slices.Sorted(slices.Values(slots)) {
		at := path + jsonpatch.Pointer(slot)
		patch = append(patch, jsonpatch.Test(at, usage[slot]), jsonpatch.Remove(at))
	}
	return patch
}
