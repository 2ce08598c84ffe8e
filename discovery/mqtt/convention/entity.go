package convention

import (
	"encoding/json"
	"regexp"
	"strings"
)

// maxAvailability bounds the topics of availability of an entity.
const maxAvailability = 16

// entityConfig is the JSON of a configuration. Each key has a short form.
type entityConfig struct {
	Base             string          `json:"~"`
	Name             json.RawMessage `json:"name"`
	UniqueID         string          `json:"unique_id"`
	UniqueIDShort    string          `json:"uniq_id"`
	Device           *deviceConfig   `json:"device"`
	DeviceShort      *deviceConfig   `json:"dev"`
	Availability     json.RawMessage `json:"availability"`
	AvailabilityList json.RawMessage `json:"avty"`
	Mode             string          `json:"availability_mode"`
	ModeShort        string          `json:"avty_mode"`
	Topic            string          `json:"availability_topic"`
	TopicShort       string          `json:"avty_t"`
	Template         string          `json:"availability_template"`
	TemplateShort    string          `json:"avty_tpl"`
	Online           string          `json:"payload_available"`
	OnlineShort      string          `json:"pl_avail"`
}

// deviceConfig is the key "device" of a configuration.
type deviceConfig struct {
	Identifiers      json.RawMessage `json:"identifiers"`
	IDs              json.RawMessage `json:"ids"`
	Connections      [][]string      `json:"connections"`
	ConnectionsShort [][]string      `json:"cns"`
	Name             string          `json:"name"`
	Manufacturer     string          `json:"manufacturer"`
	MF               string          `json:"mf"`
	Model            string          `json:"model"`
	MDL              string          `json:"mdl"`
	Version          json.RawMessage `json:"sw_version"`
	SW               json.RawMessage `json:"sw"`
}

// availabilityConfig is an item of the list "availability".
type availabilityConfig struct {
	Topic         string `json:"topic"`
	TopicShort    string `json:"t"`
	Template      string `json:"value_template"`
	TemplateShort string `json:"val_tpl"`
	Online        string `json:"payload_available"`
	OnlineShort   string `json:"pl_avail"`
}

// parseEntity parses a configuration. base is its topic without the last level. A
// configuration with FaultTemplate is valid; without the template.
func parseEntity(payload []byte, base string) (parsed entity, fault string) {
	var config entityConfig
	if !decode(payload, &config) {
		return entity{}, FaultMalformed
	}
	e := entity{base: base, all: first(config.Mode, config.ModeShort) == "all"}
	if config.Base != "" && validTopic(strings.TrimSuffix(config.Base, "/")) {
		e.base = strings.Clone(strings.TrimSuffix(config.Base, "/"))
	}
	device := config.Device
	if device == nil {
		device = config.DeviceShort
	}
	e.describe(device, &config)
	if e.id == "" {
		e.id = base // an entity without a device is one
	}
	if !validID(e.id) {
		return entity{}, FaultMalformed
	}
	e.availability, fault = config.topics()
	return e, fault
}

// describe sets the id and the description of a device.
func (e *entity) describe(device *deviceConfig, config *entityConfig) {
	if device == nil {
		e.name = clean(scalar(config.Name))
		e.id = strings.Clone(first(config.UniqueID, config.UniqueIDShort))
		return
	}
	e.name, e.manufacturer = clean(device.Name), clean(first(device.Manufacturer, device.MF))
	e.model, e.version = clean(first(device.Model, device.MDL)), clean(first(scalar(device.Version), scalar(device.SW)))
	identifiers := device.Identifiers
	if identifiers == nil {
		identifiers = device.IDs
	}
	var list []json.RawMessage
	if json.Unmarshal(identifiers, &list) == nil {
		for _, raw := range list {
			if e.id = strings.Clone(scalar(raw)); e.id != "" {
				return
			}
		}
	} else {
		e.id = strings.Clone(scalar(identifiers))
	}
	for _, connection := range append(device.Connections, device.ConnectionsShort...) {
		if e.id == "" && len(connection) == 2 && connection[1] != "" {
			e.id = connection[0] + ":" + connection[1]
		}
	}
}

// topics returns the topics of availability. Those with a template that is not supported
// are left out.
func (c *entityConfig) topics() (all []availability, fault string) {
	var items []availabilityConfig
	raw := c.Availability
	if raw == nil {
		raw = c.AvailabilityList
	}
	if len(raw) > 0 && raw[0] == '{' { // Home Assistant accepts one item without a list
		raw = append(append([]byte{'['}, raw...), ']')
	}
	if raw != nil && json.Unmarshal(raw, &items) != nil {
		return nil, FaultMalformed
	}
	if topic := first(c.Topic, c.TopicShort); topic != "" {
		items = append(items, availabilityConfig{Topic: topic, Template: first(c.Template, c.TemplateShort)})
	}
	if len(items) > maxAvailability {
		return nil, FaultMalformed
	}
	for _, item := range items {
		topic := first(item.Topic, item.TopicShort)
		switch {
		case strings.HasPrefix(topic, "~"):
			topic = c.Base + topic[1:]
		case strings.HasSuffix(topic, "~"):
			topic = topic[:len(topic)-1] + c.Base
		}
		path, ok := templatePath(first(item.Template, item.TemplateShort))
		if !validTopic(topic) {
			return nil, FaultMalformed
		}
		if !ok {
			fault = FaultTemplate
			continue
		}
		all = append(all, availability{
			topic: strings.Clone(topic), path: path,
			online: clean(first(item.Online, item.OnlineShort, c.Online, c.OnlineShort, "online")),
		})
	}
	return all, fault
}

// template matches the templates that are supported: the payload, or a part of its JSON.
var template = regexp.MustCompile(`^\{\{\s*(value|value_json((?:\.[A-Za-z_][A-Za-z0-9_]*|\[(?:\d+|'[^']*'|"[^"]*")\])+))\s*\}\}$`)

// elements matches the elements of a path in a template.
var elements = regexp.MustCompile(`\.([A-Za-z0-9_]+)|\[(\d+)\]|\['([^']*)'\]|\["([^"]*)"\]`)

// templatePath returns the path that a template selects. ok is false for a template that
// is not supported.
func templatePath(text string) (path []string, ok bool) {
	if text == "" {
		return nil, true
	}
	found := template.FindStringSubmatch(strings.TrimSpace(text))
	if found == nil {
		return nil, false
	}
	for _, element := range elements.FindAllStringSubmatch(found[2], maxDepth) {
		path = append(path, strings.Clone(first(element[1:]...)))
	}
	return path, true
}

// first returns the first text that is not empty.
func first(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}
