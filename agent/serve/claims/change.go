package claims

import (
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/jsonpatch"
	"akri.sh/akri/internal/usagepatch"
)

// change is what a claim or a release does to slots.
type change struct {
	slots  []string
	from   v0.Owner
	to     v0.Owner
	pinned bool // the patch applies to the version read only
}

// patch returns the patch that makes the change, which is empty if the Instance
// already shows it. It returns false if a slot has another owner.
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
