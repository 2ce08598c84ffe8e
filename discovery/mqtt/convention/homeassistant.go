package convention

import (
	"cmp"
	"encoding/hex"
	"net"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// homeAssistant is Home Assistant's MQTT discovery: a retained configuration for each
// entity, or for each device with its components, which names topics of availability. Each
// key has a short form.
type homeAssistant struct{ prefix string }

func (h homeAssistant) filters() []string {
	return []string{h.prefix + "/+/+/config", h.prefix + "/+/+/+/config"}
}

// base returns the topic of a configuration without its last level.
func (h homeAssistant) base(topic string) (base string, ok bool) {
	base, ok = strings.CutSuffix(topic, "/config")
	rest, below := strings.CutPrefix(base, h.prefix+"/")
	levels := strings.Count(rest, "/")
	return base, ok && below && (levels == 1 || levels == 2)
}

// state implements [layout]. It is all of the payload, because entities may compare different
// parts.
func (h homeAssistant) state(message Message) (text string, ok bool) {
	_, isConfig := h.base(message.Topic)
	return string(message.Payload), !isConfig
}

// permittedLevels matches the levels below the prefix that Home Assistant accepts.
var permittedLevels = regexp.MustCompile(`^(\w+)(?:/[\w-]+){1,2}$`)

// parse implements [layout]. What Home Assistant would ignore is malformed.
func (h homeAssistant) parse(message Message) (devices []announcement, fault Effect, ok bool) {
	base, ok := h.base(message.Topic)
	if !ok {
		return nil, Effect{}, false
	}
	levels := permittedLevels.FindStringSubmatch(strings.TrimPrefix(base, h.prefix+"/"))
	if levels == nil {
		return nil, Effect{Fault: FaultTopic}, true
	}
	document, ok := decode(message.Payload)
	if !ok {
		return nil, Effect{Fault: FaultMalformed}, true
	}
	config := fields(document.Map())
	entity, described := describe(config, base)
	if !described && topicKey.MatchString(document.Raw) { // an entity without a device is one
		entity.keys, entity.device.ID, described = []string{base}, base, true
	}
	components, isDevice := []fields{config}, levels[1] == "device"
	switch {
	case len(config) == 0: // removes the entity
		return []announcement{}, Effect{}, true
	case config.of("migrate_discovery", "migr_discvry").Bool():
		return nil, Effect{}, true // another configuration of the same entities follows, so nothing changes until then
	case !described || isDevice && !config.of("components", "cmps").IsObject():
		return nil, Effect{Fault: FaultMalformed}, true
	case isDevice:
		components = nil
		config.of("components", "cmps").ForEach(func(_, each gjson.Result) bool {
			if !each.IsObject() {
				fault.Fault = FaultMalformed
			} else if component := fields(each.Map()); len(component) > 1 { // one with only a platform is removed
				components = append(components, component)
			}
			return len(components) < maxComponents
		})
		if components == nil && fault.Fault != "" {
			return nil, fault, true
		}
	}
	devices = []announcement{}
	list := listed(config.of("availability", "avty")) // once, however many components there are
	for _, component := range components {
		platform := levels[1]
		if isDevice {
			platform = component.text("platform", "p")
		}
		entity.availability, entity.all = nil, false
		if platform != "device_automation" && platform != "tag" { // these have no availability
			var found Effect
			entity.availability, entity.all, found = availabilityOf(component, config, list)
			fault = cmp.Or(fault, found)
		}
		if n := len(devices); n == 0 || !reflect.DeepEqual(devices[n-1], entity) { // most components are like their neighbors
			devices = append(devices, entity)
		}
	}
	return devices, fault, true
}

// maxComponents bounds the components of a device.
const maxComponents = 1000

// fields are the values of an object.
type fields map[string]gjson.Result

// of returns the value of the first of some keys that there is, and that is not null.
func (f fields) of(keys ...string) gjson.Result {
	for _, key := range keys {
		if found := f[key]; found.Type != gjson.Null {
			return found
		}
	}
	return gjson.Result{}
}

// text returns the text of such a value.
func (f fields) text(keys ...string) string { return pythonText(f.of(keys...)) }

// describe returns who an entity's device is. ok is false if nothing identifies it.
func describe(config fields, base string) (entity announcement, ok bool) {
	device := fields(config.of("device", "dev").Map())
	entity = announcement{rank: 2, device: Device{
		BaseTopic: base, Name: clean(device.text("name")), Manufacturer: clean(device.text("manufacturer", "mf")),
		Model: clean(device.text("model", "mdl")), Version: clean(device.text("sw_version", "sw")),
	}}
	if len(device) == 0 {
		entity.device.Name = clean(config.text("name"))
	}
	if own := strings.TrimSuffix(config.text("~"), "/"); validTopic(own) {
		entity.device.BaseTopic = own
	}
	add := func(rank int, kind, id string) {
		switch {
		case !validID(id):
			return
		case entity.keys == nil:
			entity.keys, entity.rank, entity.device.ID = []string{id}, rank, id
		}
		entity.keys = append(entity.keys, kind+"\n"+id) // which no id is
	}
	for _, id := range device.of("identifiers", "ids").Array() {
		add(0, "identifier", pythonText(id))
	}
	for _, connection := range device.of("connections", "cns").Array() {
		if pair := connection.Array(); len(pair) == 2 && pythonText(pair[1]) != "" {
			add(1, "connection", connectionID(pythonText(pair[0]), pythonText(pair[1])))
		}
	}
	if entity.keys == nil {
		add(2, "entity", config.text("unique_id", "uniq_id"))
	}
	return entity, entity.keys != nil
}

// topicKey matches a key that names a topic, which every entity has.
var topicKey = regexp.MustCompile(`(?:topic|_t|"t)"\s*:`)

// macSeparators are what separates the bytes of a MAC address.
var macSeparators = strings.NewReplacer(":", "", "-", "", ".", "")

// connectionID returns the id of a device that has no better one than a connection. MAC addresses
// are as Home Assistant writes them.
func connectionID(kind, id string) string {
	if mac, err := hex.DecodeString(macSeparators.Replace(id)); kind == "mac" && err == nil && len(mac) == 6 {
		id = net.HardwareAddr(mac).String()
	}
	return kind + ":" + id
}

// available returns a topic of availability as a configuration names it. One with a template that is
// not supported is unknown.
func available(topic, template, online string) availability {
	parsed, supported := parseTemplate(template)
	return availability{topic: topic, template: parsed, online: []string{cmp.Or(online, "online")}, subscribe: true, unknown: !supported}
}

// listed returns the topics of a list of availability, in which one item needs no list.
func listed(items gjson.Result) (topics []availability) {
	for _, item := range items.Array() {
		if len(topics) == maxRecordBytes/availabilityBytes {
			break // it is too large in any case
		}
		each := fields(item.Map())
		topics = append(topics, available(
			each.text("topic", "t"), each.text("value_template", "val_tpl"), each.text("payload_available", "pl_avail")))
	}
	return topics
}

// availabilityOf returns the topics of availability of a component of a device with a list, or of an
// entity that is its own device. Of one that is not valid, it is unknown what it says.
//
// Which message is the latest is unknown for retained ones, so the mode "latest" is treated
// like "any".
func availabilityOf(component, device fields, list []availability) (topics []availability, all bool, fault Effect) {
	text := func(keys ...string) string { return cmp.Or(component.text(keys...), device.text(keys...)) }
	topics = slices.Clone(list)
	if own := component.of("availability", "avty"); own.Exists() {
		topics = listed(own)
	}
	if topic := text("availability_topic", "avty_t"); topic != "" {
		topics = append(topics, available(topic, text("availability_template", "avty_tpl"), text("payload_available", "pl_avail")))
	}
	base := text("~")
	for i, each := range topics {
		if rest, ok := strings.CutPrefix(each.topic, "~"); ok && base != "" {
			each.topic = base + rest
		} else if rest, ok := strings.CutSuffix(each.topic, "~"); ok && base != "" {
			each.topic = rest + base
		}
		topics[i] = availability{online: []string{""}, unknown: true}
		switch {
		case each.unknown:
			fault = Effect{Fault: FaultTemplate}
		case !validTopic(each.topic):
			fault = Effect{Fault: FaultTopic, Subject: each.topic}
		default:
			topics[i] = each
		}
	}
	return topics, text("availability_mode", "avty_mode") == "all", fault
}
