package convention

import (
	"slices"
	"strings"
	"time"
)

// homie is Homie 3, 4 and 5. Homie 5 has one more level, "5", and a description in JSON.
// The records are the attributes of devices, by topic.
type homie struct {
	prefix  string
	records records[homieRecord]
}

// homieRecord is the value of an attribute.
type homieRecord struct {
	// text is the value; of a description, the device's name.
	text string
	// root and kind are parts of a description.
	root, kind string
}

// homieAttributes are the attributes of Homie 3 and 4 that matter.
var homieAttributes = []string{"$homie", "$state", "$name", "$implementation", "$fw/version"}

func newHomie(prefix string) *homie {
	return &homie{prefix: prefix, records: newRecords[homieRecord]()}
}

// Filters implements [Convention].
func (h *homie) Filters() []string {
	filters := []string{h.prefix + "/5/+/$state", h.prefix + "/5/+/$description"}
	for _, attribute := range homieAttributes {
		filters = append(filters, h.prefix+"/+/"+attribute)
	}
	return filters
}

// MaxPayload implements [Convention].
func (h *homie) MaxPayload() int { return maxPayload }

// Renew implements [Convention].
func (h *homie) Renew(bool, time.Time) Convention { return newHomie(h.prefix) }

// parse splits a topic. five says that it is one of Homie 5.
func (h *homie) parse(topic string) (id, attribute string, five, ok bool) {
	rest, ok := strings.CutPrefix(topic, h.prefix+"/")
	if !ok {
		return "", "", false, false
	}
	id, attribute, _ = strings.Cut(rest, "/")
	if id == "5" && !strings.HasPrefix(attribute, "$") {
		id, attribute, _ = strings.Cut(attribute, "/")
		return id, attribute, true, validID(id) && (attribute == "$state" || attribute == "$description")
	}
	return id, attribute, false, validID(id) && slices.Contains(homieAttributes, attribute)
}

// Bytes implements [Convention].
func (h *homie) Bytes() int { return h.records.memory() }

// Apply implements [Convention].
func (h *homie) Apply(message Message, _ time.Time) Effect {
	_, attribute, _, ok := h.parse(message.Topic)
	switch {
	case !ok:
		return Effect{}
	case len(message.Payload) == 0:
		return Effect{Devices: h.records.remove(message.Topic)}
	}
	value := homieRecord{}
	if attribute == "$description" {
		var description struct {
			Name string `json:"name"`
			Root string `json:"root"`
			Type string `json:"type"`
		}
		if !decode(message.Payload, &description) {
			return Effect{Fault: FaultMalformed}
		}
		value = homieRecord{text: clean(description.Name), root: clean(description.Root), kind: clean(description.Type)}
	} else {
		value.text = clean(string(message.Payload))
	}
	if former, found := h.records.get(message.Topic); found && former == value {
		return Effect{}
	}
	if !h.records.put(message.Topic, value, len(value.text)+len(value.root)+len(value.kind)) {
		return Effect{Fault: FaultTooMany}
	}
	return Effect{Devices: true}
}

// homieDevice is a device as its attributes describe it.
type homieDevice struct {
	four, five map[string]homieRecord
}

// Devices implements [Convention]. A device that announces itself in both forms is one
// device, described by Homie 5.
func (h *homie) Devices(time.Time) []Device {
	all := map[string]*homieDevice{}
	for topic, record := range h.records.byTopic {
		id, attribute, five, _ := h.parse(topic)
		device := all[id]
		if device == nil {
			device = &homieDevice{map[string]homieRecord{}, map[string]homieRecord{}}
			all[id] = device
		}
		if five {
			device.five[attribute] = record.value
		} else {
			device.four[attribute] = record.value
		}
	}
	var devices []Device
	for id, attributes := range all {
		if device, ok := h.device(id, attributes, all); ok {
			devices = append(devices, device)
		}
	}
	return devices
}

func (h *homie) device(id string, attributes *homieDevice, all map[string]*homieDevice) (Device, bool) {
	device := Device{ID: id}
	if state, ok := attributes.five["$state"]; ok {
		description, described := attributes.five["$description"]
		if !described {
			return Device{}, false
		}
		device.BaseTopic, device.Name, device.Model = h.prefix+"/5/"+id, description.text, description.kind
		device.Presence = homiePresence(state.text)
		// Only the root of a tree of devices has a last will.
		if root, found := all[description.root]; found && description.root != id {
			if rootState, ok := root.five["$state"]; ok && homiePresence(rootState.text) != Online {
				device.Presence = homiePresence(rootState.text)
			}
		}
		return device, true
	}
	state, ok := attributes.four["$state"]
	if _, announced := attributes.four["$homie"]; !ok || !announced {
		return Device{}, false
	}
	device.BaseTopic, device.Name = h.prefix+"/"+id, attributes.four["$name"].text
	device.Model, device.Version = attributes.four["$implementation"].text, attributes.four["$fw/version"].text
	device.Presence = homiePresence(state.text)
	return device, true
}

// homiePresence returns the meaning of a value of $state. A sleeping device is there.
func homiePresence(state string) Presence {
	switch state {
	case "ready", "sleeping", "alert":
		return Online
	case "init":
		return Unsettled
	}
	return Offline
}
