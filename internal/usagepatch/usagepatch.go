package usagepatch

import (
	"maps"
	"slices"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/jsonpatch"
)

const path = "/spec/deviceUsage"

// Set returns the operations that set the owners of slots to those in to. usage is
// deviceUsage as read. A slot is free if it is "" or absent, or if the whole field is
// absent; a patch must distinguish these.
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

// Free returns the operations that free slots, which must be in usage. They remove the
// entries: an agent of the original Akri cannot claim a slot whose entry another field
// manager owns, even if it is "".
func Free(usage map[string]v0.SlotOwner, slots []string) jsonpatch.Patch {
	var patch jsonpatch.Patch
	for _, slot := range slices.Sorted(slices.Values(slots)) {
		at := path + jsonpatch.Pointer(slot)
		patch = append(patch, jsonpatch.Test(at, usage[slot]), jsonpatch.Remove(at))
	}
	return patch
}
