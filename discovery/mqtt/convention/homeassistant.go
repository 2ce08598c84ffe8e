package convention

import (
	"cmp"
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

// permittedLevels matches the levels below the prefix that Home Assistant accepts.
var permittedLevels = regexp.MustCompile(`^(\w+)(?:/[\w-]+){1,2}$`)

// parse implements [layout]. What Home Assistant would ignore is malformed.
func (h homeAssistant) parse(message Message) (devices []announcement, f fault, ok bool) {
	base, ok := h.base(message.Topic)
	if !ok {
		return nil, fault{}, false
	}
	levels := permittedLevels.FindStringSubmatch(strings.TrimPrefix(base, h.prefix+"/"))
	if levels == nil {
		return nil, fault{reason: FaultTopic}, true
	}
	config, ok := decode(message.Payload)
	if !ok {
		return nil, fault{reason: FaultMalformed}, true
	}
	components := []gjson.Result{config}
	switch keys := config.Map(); {
	case len(keys) == 0: // removes the entity
		return []announcement{}, fault{}, true
	case len(keys) == 1 && value(config, "migrate_discovery", "migr_discvry").Bool():
		return nil, fault{}, true // another configuration of the same entities follows, so nothing changes until then
	case levels[1] == "device":
		components = slices.Collect(func(yield func(gjson.Result) bool) {
			value(config, "components", "cmps").ForEach(func(_, each gjson.Result) bool {
				return len(each.Map()) < 2 || yield(each) // one with only a platform is removed
			})
		})
	}
	entity, ok := describe(config, base)
	if !ok {
		return nil, fault{reason: FaultMalformed}, true
	}
	devices = []announcement{}
	for _, each := range components {
		platform := cmp.Or(textOf(each, "platform", "p"), levels[1])
		if entity.availability, entity.all = nil, false; platform != "device_automation" && platform != "tag" { // these have no availability
			var fault fault
			entity.availability, fault = availabilityOf(each, config)
			f = cmp.Or(f, fault)
			entity.all = pythonText(setting(each, config, "availability_mode", "avty_mode")) == "all"
		}
		if n := len(devices); n == 0 || !reflect.DeepEqual(devices[n-1], entity) { // most components of a device are like their neighbors
			devices = append(devices, entity)
		}
	}
	return devices, f, true
}

// describe returns who an entity's device is. ok is false for what is no entity.
func describe(config gjson.Result, base string) (entity announcement, ok bool) {
	device := value(config, "device", "dev")
	entity.device = Device{BaseTopic: base, Name: clean(pythonText(value(config, "name")))}
	if device.IsObject() {
		entity.device.Name = clean(pythonText(value(device, "name")))
	}
	entity.device.Manufacturer = clean(pythonText(value(device, "manufacturer", "mf")))
	entity.device.Model = clean(pythonText(value(device, "model", "mdl")))
	entity.device.Version = clean(pythonText(value(device, "sw_version", "sw")))
	if own := strings.TrimSuffix(textOf(config, "~"), "/"); validTopic(own) {
		entity.device.BaseTopic = own
	}
	add := func(rank int, key string) {
		if !validID(key) {
			return
		}
		if entity.keys == nil {
			entity.rank = rank
		}
		entity.keys = append(entity.keys, key)
	}
	for _, id := range value(device, "identifiers", "ids").Array() {
		add(0, pythonText(id))
	}
	for _, connection := range value(device, "connections", "cns").Array() {
		if pair := connection.Array(); len(pair) == 2 && pythonText(pair[1]) != "" {
			add(1, pythonText(pair[0])+":"+normalMAC(pythonText(pair[1])))
		}
	}
	if entity.keys == nil {
		add(2, pythonText(value(config, "unique_id", "uniq_id")))
	}
	if entity.keys == nil && hasTopic(config) { // an entity without a device is one
		add(2, base)
	}
	if entity.keys == nil {
		return entity, false
	}
	entity.device.ID = entity.keys[0]
	return entity, true
}

// hasTopic reports whether a configuration names a topic, which every entity does.
func hasTopic(config gjson.Result) (found bool) {
	config.ForEach(func(key, _ gjson.Result) bool {
		found = strings.HasSuffix(key.Str, "topic") || strings.HasSuffix(key.Str, "_t") || key.Str == "t"
		return !found
	})
	return found
}

// macSeparators are what separates the bytes of a MAC address.
var macSeparators = strings.NewReplacer(":", "", "-", "", ".", "")

// normalMAC returns a MAC address as Home Assistant writes it. Other texts stay as they are.
func normalMAC(text string) string {
	digits := strings.ToLower(macSeparators.Replace(text))
	if len(digits) != 12 || strings.Trim(digits, "0123456789abcdef") != "" {
		return text
	}
	for at := 10; at > 0; at -= 2 {
		digits = digits[:at] + ":" + digits[at:]
	}
	return digits
}

// setting returns a value of a component, or that of its device.
func setting(component, device gjson.Result, keys ...string) gjson.Result {
	if own := value(component, keys...); own.Exists() {
		return own
	}
	return value(device, keys...)
}

// availabilityOf returns the topics of availability. Of one that is not valid, or has a template
// that is not supported, it is unknown what it says.
//
// Which message is the latest is unknown for retained ones, so the mode "latest" is treated
// like "any".
func availabilityOf(component, device gjson.Result) (all []availability, f fault) {
	text := func(keys ...string) string { return pythonText(setting(component, device, keys...)) }
	add := func(topic, template, online string) {
		if rest, ok := strings.CutPrefix(topic, "~"); ok {
			topic = text("~") + rest
		} else if rest, ok := strings.CutSuffix(topic, "~"); ok {
			topic = rest + text("~")
		}
		each := availability{topic: topic, online: []string{online}, subscribe: true}
		if each.template, each.unknown = parseTemplate(template); each.unknown {
			each.subscribe, f = false, fault{reason: FaultTemplate}
		} else if !validTopic(topic) {
			each = availability{online: []string{""}, unknown: true}
			f = fault{FaultTopic, topic}
		}
		all = append(all, each)
	}
	online := cmp.Or(text("payload_available", "pl_avail"), "online")
	for _, item := range setting(component, device, "availability", "avty").Array() { // one item needs no list
		add(textOf(item, "topic", "t"), textOf(item, "value_template", "val_tpl"),
			cmp.Or(pythonText(value(item, "payload_available", "pl_avail")), online))
	}
	if topic := text("availability_topic", "avty_t"); topic != "" {
		add(topic, text("availability_template", "avty_tpl"), online)
	}
	return all, f
}
