package publish

import (
	"slices"

	v0 "akri.sh/akri/api/v0"
)

// holding says who has slots of an Instance.
type holding struct {
	own    bool // this node
	others bool // anybody else
}

// holders returns who has slots of an Instance. An owner that cannot be parsed is not
// this node. Keys that are not slots of the Instance are ignored: no container has them.
func holders(have *v0.Instance, node string) holding {
	var held holding
	for name, value := range have.Spec.DeviceUsage {
		if _, err := v0.ParseSlotName(have.Name, name); err != nil || value == "" {
			continue
		}
		if owner, err := v0.ParseOwner(string(value)); err == nil && owner.Node == node {
			held.own = true
		} else {
			held.others = true
		}
	}
	return held
}

// deserted reports whether no other node sees an Instance and no container has a slot of
// it, so that this node's agent may delete it. Without the Instance, another node that
// finds the device could be given a slot that a container of this node still has. No
// other node can find a local device, and this node remembers its own containers.
func deserted(have *v0.Instance, node string) bool {
	held := holders(have, node)
	return !slices.ContainsFunc(have.Spec.Nodes, func(other string) bool { return other != node }) &&
		!held.others && !(held.own && have.Spec.Shared)
}
