package deviceplugin

import (
	"fmt"
	"strconv"

	"akri.sh/akri/agent/serve/slots"
	v0 "akri.sh/akri/api/v0"
)

// formatID returns the kubelet's ID of a slot of an Instance, INSTANCE-N, or of a group,
// which is a plain number. These are the original Akri's.
func formatID(resource slots.Resource, id int) string {
	if resource.Group {
		return strconv.Itoa(id)
	}
	return v0.SlotName(resource.Name, id)
}

// parseID is the inverse of formatID.
func parseID(resource slots.Resource, id string) (int, error) {
	if !resource.Group {
		return v0.ParseSlotName(resource.Name, id)
	}
	number, err := strconv.Atoi(id)
	if err != nil || number < 0 || id != strconv.Itoa(number) {
		return 0, fmt.Errorf("%q is not an ID of Configuration %s: want a number", id, resource.Name)
	}
	return number, nil
}
