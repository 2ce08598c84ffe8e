package claims

import (
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/jsonpatch"
	"akri.sh/akri/internal/usagepatch"
)

// change is the effect of a claim or a release on slots.
type change struct {
	slots  []string
	from   v0.Owner
	to     v0.Owner
	pinned bool // the patch applies only to the version that was read
}

// patch returns the patch that makes the change. It is empty if the Instance already
// has it. patch returns false if a slot has another owner.
func (c change) patch(instance *v0.Instance) (jsonpatch.Patch, bool) {
	to := map[string]v0.SlotOwner{}
	for _, slot := range c.slots {
		switch owner := string(instance.Spec.DeviceUsage[slot]); owner {
		case c.to.String():
		case c.from.String():
			to[slot] = v0.SlotOwner(c.to.String())
		default:
			return nil, false
		}
	}
	patch := usagepatch.Set(instance.Spec.DeviceUsage, to)
	if c.pinned && len(patch) > 0 {
		patch = append(jsonpatch.Patch{jsonpatch.Test("/metadata/resourceVersion", instance.ResourceVersion)}, patch...)
	}
	return patch, true
}
