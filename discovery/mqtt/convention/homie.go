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

// Begin implements [Convention].
func (h *homie) Begin(bool, time.Time) { h.records.begin() }

// End implements [Convention].
func (h *homie) End() { h.records.end() }

// parse splits a topic. The attributes of Homie 5 begin with "5/".
func (h *homie) parse(topic string) (id, attribute string, ok bool) {
	rest, ok := strings.CutPrefix(topic, h.prefix+"/")
	if !ok {
		return "", "", false
	}
	id, attribute, _ = strings.Cut(rest, "/")
	if id == "5" && !strings.HasPrefix(attribute, "$") {
		id, attribute, _ = strings.Cut(attribute, "/")
		return id, "5/" + attribute, validID(id) && (attribute == "$state" || attribute == "$description")
	}
	return id, attribute, validID(id) && slices.Contains(homieAttributes, attribute)
}

// Apply implements [Convention].
func (h *homie) Apply(message Message, _ time.Time) Effect {
	_, attribute, ok := h.parse(message.Topic)
	switch {
	case !ok:
		return Effect{}
	case len(message.Payload) == 0:
		return h.records.remove(message.Topic)
	case attribute != "5/$description":
		text := clean(string(message.Payload))
		return h.records.put(message.Topic, homieRecord{text: text}, len(text))
	}
	description, ok := decode(message.Payload)
	if !ok {
		return Effect{Fault: FaultMalformed}
	}
	value := homieRecord{
		text: clean(textOf(description, "name")), root: clean(textOf(description, "root")), kind: clean(textOf(description, "type")),
	}
	return h.records.put(message.Topic, value, len(value.text)+len(value.root)+len(value.kind))
}

// Devices implements [Convention]. A device that announces itself in both forms is one
// device, described by Homie 5.
func (h *homie) Devices() []Device {
	all := map[string]map[string]homieRecord{} // the attributes by the id of the device
	for topic, record := range h.records.byTopic {
		id, attribute, _ := h.parse(topic)
		if all[id] == nil {
			all[id] = map[string]homieRecord{}
		}
		all[id][attribute] = record.value
	}
	var devices []Device
	for id, attributes := range all {
		if state, ok := attributes["5/$state"]; ok {
			description, described := attributes["5/$description"]
			if !described {
				continue
			}
			presence := homiePresence(state.text)
			// Only the root of a tree of devices has a last will.
			if root, found := all[description.root]["5/$state"]; found && homiePresence(root.text) != Online {
				presence = homiePresence(root.text)
			}
			devices = append(devices, Device{
				ID: id, BaseTopic: h.prefix + "/5/" + id, Name: description.text, Model: description.kind, Presence: presence,
			})
			continue
		}
		state, ok := attributes["$state"]
		if _, announced := attributes["$homie"]; ok && announced {
			devices = append(devices, Device{
				ID: id, BaseTopic: h.prefix + "/" + id, Name: attributes["$name"].text, Presence: homiePresence(state.text),
				Model: attributes["$implementation"].text, Version: attributes["$fw/version"].text,
			})
		}
	}
	return devices
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
