package v0

import (
	"fmt"
	"strings"
)

// Owner is the owner of a slot. The zero value means that the slot is free.
type Owner struct {
	// Node is the node whose kubelet allocated the slot to a container.
	Node string
	// VirtualID is the kubelet's device ID of the slot if it was allocated through the
	// Configuration's resource. It is empty if it was allocated through the Instance's.
	VirtualID string
}

// Free reports whether the slot has no owner.
func (o Owner) Free() bool { return o == Owner{} }

// String returns the value for deviceUsage: "", NODE or C:VIRTUALID:NODE.
func (o Owner) String() string {
	if o.VirtualID == "" {
		return o.Node
	}
	return "C:" + o.VirtualID + ":" + o.Node
}

// ParseOwner parses a value of deviceUsage. It accepts virtual IDs that are numbers
// ("C:0:node-b") and those of the original Akri ("C:akri-onvif-0:node-b").
func ParseOwner(value string) (Owner, error) {
	parts := strings.Split(value, ":")
	switch {
	case len(parts) == 1:
		return Owner{Node: value}, nil
	case len(parts) == 3 && parts[0] == "C" && parts[1] != "" && parts[2] != "":
		return Owner{Node: parts[2], VirtualID: parts[1]}, nil
	}
	return Owner{}, fmt.Errorf("deviceUsage value %q: want \"\", NODE or C:VIRTUALID:NODE", value)
}

// Held reports whether any slot of an Instance has an owner. Keys of deviceUsage that
// are not slots of the Instance do not count.
func Held(instance *Instance) bool {
	for name, owner := range instance.Spec.DeviceUsage {
		if _, err := ParseSlotName(instance.Name, name); err == nil && owner != "" {
			return true
		}
	}
	return false
}

// FreeSlots returns the number of slots of an Instance that no container has.
func FreeSlots(instance *Instance) int32 {
	free := instance.Spec.Capacity
	for name, owner := range instance.Spec.DeviceUsage {
		if _, err := ParseSlotName(instance.Name, name); err == nil && owner != "" {
			free--
		}
	}
	return max(free, 0)
}
