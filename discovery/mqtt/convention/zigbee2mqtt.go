package convention

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"

	"akri.sh/akri/discovery/internal/jsonvalue"
	"akri.sh/akri/internal/text"
)

const (
	// maxBridgePayload bounds the list of devices of a bridge, which describes each device
	// with some KiB.
	maxBridgePayload = 4 << 20
	// maxBridgeDevices bounds the number of devices in that list. A network has some hundred.
	maxBridgeDevices = 10_000
)

// zigbee2MQTT is the bridge Zigbee2MQTT: one retained list of devices, the bridge's last
// will, and the availability of devices if the bridge checks it.
type zigbee2MQTT struct{ prefix string }

func (z zigbee2MQTT) base(name string) string         { return z.prefix + "/" + name }
func (z zigbee2MQTT) availability(name string) string { return z.base(name) + "/availability" }

func (z zigbee2MQTT) filters() []string {
	return []string{z.base("bridge/devices"), z.base("bridge/state"), z.availability("+")}
}

// state implements [layout]. Old versions write a state as text and new ones as JSON.
func (z zigbee2MQTT) state(message Message) (kept string, ok bool) {
	if message.Topic == z.base("bridge/devices") {
		return "", false
	}
	if object, isObject := decode(message.Payload); isObject {
		return textOf(object, "state"), true
	}
	return clean(string(message.Payload)), true
}

// parse implements [layout].
func (z zigbee2MQTT) parse(message Message) (devices []announcement, fault Effect, ok bool) {
	if message.Topic != z.base("bridge/devices") {
		return nil, Effect{}, false
	}
	list, ok := jsonvalue.Parse(message.Payload)
	if !ok || !list.IsArray() {
		return nil, Effect{Fault: FaultMalformed}, true
	}
	devices = []announcement{}
	bridge := availability{topic: z.base("bridge/state"), online: []string{"online"}}
	list.ForEach(func(_, item gjson.Result) bool {
		id, name := textOf(item, "ieee_address"), textOf(item, "friendly_name")
		own := availability{
			topic: z.availability(name), online: bridge.online, optional: true,
			subscribe: strings.Contains(name, "/"), // the other names match a filter of the layout
		}
		switch {
		case len(devices) == maxBridgeDevices:
			fault.Fault = FaultTooMany
			return false
		case textOf(item, "type") == "Coordinator" || item.Get("disabled").Bool():
		case !validID(id) || name == "":
			fault.Fault = cmp.Or(fault.Fault, FaultMalformed)
		case !validTopic(own.topic):
			fault.Fault, fault.Subject = FaultTopic, text.Truncate(strings.TrimPrefix(fault.Subject+", "+z.base(name), ", "), maxTopicBytes)
		default:
			described := Device{
				ID: id, BaseTopic: z.base(name), Name: clean(name), Version: clean(textOf(item, "software_build_id")),
				Manufacturer: clean(textOf(item, "manufacturer")), Model: clean(textOf(item, "model_id")),
			}
			if model := textOf(item, "definition.model"); model != "" {
				described.Manufacturer, described.Model = clean(textOf(item, "definition.vendor")), clean(model)
			}
			devices = append(devices, announcement{keys: []string{id}, device: described, availability: []availability{bridge, own}, all: true})
		}
		return true
	})
	return devices, fault, true
}
