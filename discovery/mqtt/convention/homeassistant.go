package convention

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/tidwall/gjson"

	"akri.sh/akri/discovery/internal/jsonvalue"
)

// homeAssistant is Home Assistant's MQTT discovery: a retained configuration for each
// entity, or for each device, which names topics of availability. Each key has a short form.
type homeAssistant struct{ prefix string }

func (h homeAssistant) filters() []string {
	return []string{h.prefix + "/+/+/config", h.prefix + "/+/+/+/config"}
}

func (h homeAssistant) maxPayload() int { return maxPayload }

// base returns the topic of a configuration without its last level.
func (h homeAssistant) base(topic string) (base string, ok bool) {
	rest, ok := strings.CutPrefix(topic, h.prefix+"/")
	levels := strings.Count(rest, "/")
	base, isConfig := strings.CutSuffix(topic, "/config")
	return base, ok && isConfig && (levels == 2 || levels == 3)
}

// state implements [layout]. It is all of the payload, because entities may compare different
// parts.
func (h homeAssistant) state(message Message) (text string, ok bool) {
	_, isConfig := h.base(message.Topic)
	return string(message.Payload), !isConfig
}

// parse implements [layout]. A configuration with FaultTemplate is valid; without the template.
func (h homeAssistant) parse(message Message) (devices []announcement, fault string, ok bool) {
	base, ok := h.base(message.Topic)
	if !ok {
		return nil, "", false
	}
	config, ok := decode(message.Payload)
	if !ok {
		return nil, FaultMalformed, true
	}
	entity := announcement{device: describe(config), all: textOf(config, "availability_mode", "avty_mode") == "all"}
	entity.device.BaseTopic = base
	if own := strings.TrimSuffix(textOf(config, "~"), "/"); validTopic(own) {
		entity.device.BaseTopic = own
	}
	entity.device.ID = cmp.Or(entity.device.ID, base) // an entity without a device is one
	if !validID(entity.device.ID) {
		return nil, FaultMalformed, true
	}
	if entity.availability, fault = availabilityOf(config); fault == FaultMalformed {
		return nil, fault, true
	}
	return []announcement{entity}, fault, true
}

// describe returns the id and the description of a device.
func describe(config gjson.Result) Device {
	device := value(config, "device", "dev")
	if !device.IsObject() {
		return Device{ID: textOf(config, "unique_id", "uniq_id"), Name: clean(textOf(config, "name"))}
	}
	described := Device{
		Name: clean(textOf(device, "name")), Manufacturer: clean(textOf(device, "manufacturer", "mf")),
		Model: clean(textOf(device, "model", "mdl")), Version: clean(textOf(device, "sw_version", "sw")),
	}
	for _, id := range value(device, "identifiers", "ids").Array() {
		described.ID = cmp.Or(described.ID, scalar(id))
	}
	for _, connection := range value(device, "connections", "cns").Array() {
		pair := connection.Array()
		if described.ID == "" && len(pair) == 2 && scalar(pair[1]) != "" {
			described.ID = scalar(pair[0]) + ":" + scalar(pair[1])
		}
	}
	return described
}

// availabilityOf returns the topics of availability. Those with a template that is not
// supported are left out.
//
// Which message is the latest is unknown for retained ones, so the mode "latest" is treated
// like "any".
func availabilityOf(config gjson.Result) (all []availability, fault string) {
	add := func(topic, template, online string) bool {
		base := textOf(config, "~")
		if rest, ok := strings.CutPrefix(topic, "~"); ok {
			topic = base + rest
		} else if rest, ok := strings.CutSuffix(topic, "~"); ok {
			topic = rest + base
		}
		if !validTopic(topic) {
			return false
		}
		if path, ok := templatePath(template); ok {
			all = append(all, availability{topic: topic, path: path, online: []string{clean(online)}, subscribe: true})
		} else {
			fault = FaultTemplate
		}
		return true
	}
	online := cmp.Or(textOf(config, "payload_available", "pl_avail"), "online")
	for _, item := range value(config, "availability", "avty").Array() { // Home Assistant accepts one item without a list
		if !add(textOf(item, "topic", "t"), textOf(item, "value_template", "val_tpl"),
			cmp.Or(textOf(item, "payload_available", "pl_avail"), online)) {
			return nil, FaultMalformed
		}
	}
	topic := textOf(config, "availability_topic", "avty_t")
	if topic != "" && !add(topic, textOf(config, "availability_template", "avty_tpl"), online) {
		return nil, FaultMalformed
	}
	return all, fault
}

// template matches the templates that are supported: the payload, or a part of its JSON.
var template = regexp.MustCompile(`^\{\{\s*(value|value_json((?:\.[A-Za-z_][A-Za-z0-9_]*|\[(?:\d+|'[^']+'|"[^"]+")\])+))\s*\}\}$`)

// elements matches the elements of a path in a template.
var elements = regexp.MustCompile(`\.([A-Za-z0-9_]+)|\[(\d+)\]|\['([^']+)'\]|\["([^"]+)"\]`)

// templatePath returns the path that a template selects. ok is false for a template that
// is not supported.
func templatePath(text string) (selected string, ok bool) {
	if text == "" {
		return "", true
	}
	if len(text) > maxRecordBytes { // the path keeps the template in memory
		return "", false
	}
	found := template.FindStringSubmatch(strings.TrimSpace(text))
	if found == nil {
		return "", false
	}
	var path []string
	for _, element := range elements.FindAllStringSubmatch(found[2], -1) {
		path = append(path, cmp.Or(element[1:]...))
	}
	return jsonvalue.Join(path...), true
}
