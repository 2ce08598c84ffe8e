package claims

import (
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/jsonpatch"
	"akri.sh/akri/internal/usagepatch"
)

// change is the effect of a claim or a release on slots.
type change struct {
	slots  map[string]transition // by slot
	pinned bool                  // the patch applies only to the version that was read
	inUse  bool                  // containers have the slots, whatever the capacity
}

// transition is a change of one slot's owner. Claims begin, and releases end, with a
// free slot.
type transition struct{ from, to v0.Owner }

// done reports whether a part of the change is done already.
func (c change) done(instance *v0.Instance) bool {
	for slot, t := range c.slots {
		if string(instance.Spec.DeviceUsage[slot]) == t.to.String() {
			return true
		}
	}
	return false
}

// shrunk reports whether slots beyond the capacity have owners, and whether a claim of
// more slots would then leave more owners than the capacity. Otherwise, each slot bounds
// its own claims.
func shrunk(instance *v0.Instance, more int) (shrunk, full bool) {
	owners := 0
	for slot, owner := range instance.Spec.DeviceUsage {
		number, err := v0.ParseSlotName(instance.Name, slot)
		if err == nil && owner != "" {
			owners++
			shrunk = shrunk || number >= int(instance.Spec.Capacity)
		}
	}
	return shrunk, owners+more > int(instance.Spec.Capacity)
}

// patch returns the patch that makes the change. It is empty if the Instance already
// has it. The error is errTaken, errFull or errLeft.
func (c change) patch(instance *v0.Instance) (jsonpatch.Patch, error) {
	to, free, node := map[string]v0.SlotOwner{}, []string(nil), ""
	for slot, t := range c.slots {
		switch owner := string(instance.Spec.DeviceUsage[slot]); {
		case owner == t.to.String():
		case owner != t.from.String():
			return nil, errTaken
		case t.to.Free():
			free = append(free, slot)
		default:
			to[slot], node = v0.SlotOwner(t.to.String()), t.to.Node
		}
	}
	label := v0.NodeLabel(node)
	value, joined := instance.Labels[label]
	if len(to) > 0 && !joined {
		return nil, errLeft
	}
	pinned := c.pinned
	if shrunk, full := shrunk(instance, len(to)); shrunk && !pinned && !c.inUse {
		if full && len(to) > 0 {
			return nil, errFull
		}
		pinned = true // another node may claim another slot at the same time
	}
	patch := append(usagepatch.Set(instance.Spec.DeviceUsage, to), usagepatch.Free(instance.Spec.DeviceUsage, free)...)
	switch {
	case len(patch) == 0:
	case pinned:
		patch = append(jsonpatch.Patch{jsonpatch.Test("/metadata/resourceVersion", instance.ResourceVersion)}, patch...)
	default: // not an Instance that is created again, whose owners may not be written yet
		tests := jsonpatch.Patch{jsonpatch.Test("/metadata/uid", instance.UID)}
		if len(to) > 0 { // without the label, the node's agent would not see that it owns a slot
			tests = append(tests, jsonpatch.Test(jsonpatch.Pointer("metadata", "labels", label), value))
		}
		patch = append(tests, patch...)
	}
	return patch, nil
}

// probe returns a patch that claims the first free slot for an owner. If no slot is
// free, the patch changes nothing, but it passes admission, too.
func probe(instance *v0.Instance, owner v0.Owner) jsonpatch.Patch {
	patch := jsonpatch.Patch{jsonpatch.Test("/metadata/uid", instance.UID)}
	for number := range instance.Spec.Capacity {
		slot := v0.SlotName(instance.Name, int(number))
		if instance.Spec.DeviceUsage[slot] == "" {
			to := map[string]v0.SlotOwner{slot: v0.SlotOwner(owner.String())}
			return append(patch, usagepatch.Set(instance.Spec.DeviceUsage, to)...)
		}
	}
	return patch
}
