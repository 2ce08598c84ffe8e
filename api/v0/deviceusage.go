package v0

import (
	"fmt"
	"strings"
)

// Owner says who holds a slot. Its zero value is nobody.
type Owner struct {
	// Node is the node whose kubelet handed the slot to a container.
	Node string
	// VirtualID is the id under which that kubelet knows the slot when it was
	// asked for through the Configuration's resource; empty when it was asked
	// for through the Instance's own.
	VirtualID string
}

// Free reports that nobody holds the slot.
func (o Owner) Free() bool { return o == Owner{} }

// String is the value kept in deviceUsage: "", NODE or C:VIRTUALID:NODE.
func (o Owner) String() string {
	if o.VirtualID == "" {
		return o.Node
	}
	return "C:" + o.VirtualID + ":" + o.Node
}

// ParseOwner reads a value of deviceUsage. It accepts virtual ids written as a
// number ("C:0:node-b") and those that Akri writes ("C:akri-onvif-0:node-b").
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
