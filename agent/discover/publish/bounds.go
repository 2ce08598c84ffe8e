package publish

import (
	"cmp"
	"fmt"

	"akri.sh/akri/agent/discover/streams"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/text"
)

const (
	// maxRefusals bounds how many refused devices are named; the rest is counted.
	maxRefusals = 3
	// maxShown bounds the bytes of a device id or a property name in a message.
	maxShown = 64
)

// candidate is a device, its Instance, if there is one, and the Instance's name.
type candidate struct {
	device streams.Device
	have   *v0.Instance
	name   string
	// refused is the reason why the device is not published; empty if it is. An Instance
	// that exists stays as it is.
	refused string
	// withheld means that containers do not get the device, although it has an Instance.
	withheld bool
}

// shownID returns the device's ID for a message.
func (c candidate) shownID() string { return text.Truncate(c.device.ID, maxShown) }

// candidates finds the Instances of devices, and refuses what is too large.
func (s nodeView) candidates(devices []streams.Device, have []*v0.Instance) []candidate {
	byName := make(map[string]*v0.Instance, len(have))
	for _, instance := range have {
		byName[instance.Name] = instance
	}
	list := make([]candidate, len(devices))
	for i, d := range devices {
		list[i] = candidate{device: d, refused: cmp.Or(d.Refused, excess(d))}
		list[i].have, list[i].name = s.find(d, byName)
	}
	return list
}

// refusals returns the reasons why devices are refused.
func refusals(list []candidate) []string {
	var reasons []string
	count := 0
	for _, c := range list {
		if c.refused == "" {
			continue
		}
		if count++; count <= maxRefusals {
			reasons = append(reasons, c.refused)
		}
	}
	if count > maxRefusals {
		reasons = append(reasons, fmt.Sprintf("%d more devices are refused", count-maxRefusals))
	}
	return reasons
}

// excess returns what is too large about a device, or "". An Instance has the
// properties of its device, and is in the memory of the controller and of agents.
func excess(d streams.Device) string {
	id := text.Truncate(d.ID, maxShown)
	if count := len(d.Properties); count > v0.MaxProperties {
		return fmt.Sprintf("device %q has %d properties, the limit is %d: let the handler report fewer", id, count, v0.MaxProperties)
	}
	sum := 0
	for name, value := range d.Properties {
		sum += len(name) + len(value)
		shown := text.Truncate(name, maxShown)
		switch {
		case len(name) > v0.MaxPropertyNameLength:
			return fmt.Sprintf("device %q has a property %q whose name has %d bytes, the limit is %d: let the handler report a shorter name",
				id, shown, len(name), v0.MaxPropertyNameLength)
		case len(value) > v0.MaxPropertyLength:
			return fmt.Sprintf("property %q of device %q has %d bytes, the limit is %d: let the handler report a reference to the value",
				shown, id, len(value), v0.MaxPropertyLength)
		}
	}
	if sum > v0.MaxPropertiesLength {
		return fmt.Sprintf("the properties of device %q have %d bytes, the limit is %d: let the handler report less",
			id, sum, v0.MaxPropertiesLength)
	}
	return ""
}
