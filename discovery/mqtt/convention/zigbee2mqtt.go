package convention

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"
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
type zigbee2MQTT struct {
	prefix  string
	devices []zigbeeDevice
	// listBytes is the memory of devices, roughly.
	listBytes int
	// bridge is the presence of the bridge.
	bridge Presence
	states records[bool]
}

type zigbeeDevice struct {
	address, name, manufacturer, model, version string
}

func newZigbee2MQTT(prefix string) *zigbee2MQTT {
	// Without a message about the bridge, it counts as offline.
	return &zigbee2MQTT{prefix: prefix, bridge: Offline, states: newRecords[bool]()}
}

func (z *zigbee2MQTT) base(name string) string         { return z.prefix + "/" + name }
func (z *zigbee2MQTT) availability(name string) string { return z.base(name) + "/availability" }

// Filters implements [Convention]. Names of devices may contain slashes; those have filters
// of their own.
func (z *zigbee2MQTT) Filters() []string {
	filters := []string{z.base("bridge/devices"), z.base("bridge/state"), z.availability("+")}
	for _, device := range z.devices {
		if strings.Contains(device.name, "/") {
			filters = append(filters, z.availability(device.name))
		}
	}
	return filters
}

// MaxPayload implements [Convention].
func (z *zigbee2MQTT) MaxPayload() int { return maxBridgePayload }

// Bytes implements [Convention].
func (z *zigbee2MQTT) Bytes() int { return z.listBytes + z.states.memory() }

// Renew implements [Convention].
func (z *zigbee2MQTT) Renew(bool, time.Time) Convention { return newZigbee2MQTT(z.prefix) }

// Apply implements [Convention].
func (z *zigbee2MQTT) Apply(message Message, _ time.Time) Effect {
	switch message.Topic {
	case z.base("bridge/devices"):
		return z.applyList(message.Payload)
	case z.base("bridge/state"):
		former := z.bridge
		z.bridge = Offline
		if zigbeeState(message.Payload) == "online" {
			z.bridge = Online
		}
		return Effect{Devices: z.bridge != former}
	}
	if !strings.HasSuffix(message.Topic, "/availability") || !strings.HasPrefix(message.Topic, z.prefix+"/") {
		return Effect{}
	}
	if len(message.Payload) == 0 {
		return Effect{Devices: z.states.remove(message.Topic)}
	}
	online := zigbeeState(message.Payload) == "online"
	former, found := z.states.get(message.Topic)
	switch {
	case found && former == online:
		return Effect{}
	case !z.states.put(message.Topic, online, 0):
		return Effect{Fault: FaultTooMany}
	}
	return Effect{Devices: true}
}

// zigbeeState returns a state, which old versions write as text and new ones as JSON.
func zigbeeState(payload []byte) string {
	var state struct {
		State string `json:"state"`
	}
	if len(payload) > 0 && payload[0] == '{' && len(payload) <= maxPayload && decode(payload, &state) {
		return state.State
	}
	return string(payload[:min(len(payload), maxValueBytes)])
}

func (z *zigbee2MQTT) applyList(payload []byte) Effect {
	if len(payload) == 0 {
		existed := len(z.devices) > 0
		z.devices, z.listBytes = nil, 0
		return Effect{Devices: existed, Filters: existed}
	}
	if tooDeep(payload) {
		return Effect{Fault: FaultMalformed}
	}
	devices, fault := parseBridgeDevices(payload)
	if fault == FaultMalformed {
		return Effect{Fault: fault}
	}
	z.devices = slices.DeleteFunc(devices, func(d zigbeeDevice) bool { return !validTopic(z.availability(d.name)) })
	z.listBytes = 0
	for _, d := range z.devices {
		z.listBytes += recordOverhead + len(d.address) + len(d.name) + len(d.manufacturer) + len(d.model) + len(d.version)
	}
	return Effect{Devices: true, Filters: true, Fault: fault}
}

// bridgeDevice is an item of the list of devices.
type bridgeDevice struct {
	Address      string `json:"ieee_address"`
	Name         string `json:"friendly_name"`
	Type         string `json:"type"`
	Disabled     bool   `json:"disabled"`
	Manufacturer string `json:"manufacturer"`
	ModelID      string `json:"model_id"`
	Version      string `json:"software_build_id"`
	Definition   *struct {
		Model  string `json:"model"`
		Vendor string `json:"vendor"`
	} `json:"definition"`
}

// parseBridgeDevices parses the list of devices, one after the other: the list as a whole
// could need much more memory than its text.
func parseBridgeDevices(payload []byte) (devices []zigbeeDevice, fault string) {
	decoder := json.NewDecoder(bytes.NewReader(payload))
	if token, err := decoder.Token(); err != nil || token != json.Delim('[') {
		return nil, FaultMalformed
	}
	for count := 0; decoder.More(); count++ {
		if count == maxBridgeDevices {
			return devices, FaultTooMany
		}
		var item bridgeDevice
		if decoder.Decode(&item) != nil {
			return nil, FaultMalformed
		}
		if item.Type == "Coordinator" || item.Disabled || !validID(item.Address) || item.Name == "" {
			continue
		}
		device := zigbeeDevice{
			address: strings.Clone(item.Address), name: strings.Clone(item.Name),
			manufacturer: clean(item.Manufacturer), model: clean(item.ModelID), version: clean(item.Version),
		}
		if item.Definition != nil && item.Definition.Model != "" {
			device.manufacturer, device.model = clean(item.Definition.Vendor), clean(item.Definition.Model)
		}
		devices = append(devices, device)
	}
	if _, err := decoder.Token(); err != nil {
		return nil, FaultMalformed
	}
	return devices, ""
}

// Devices implements [Convention].
func (z *zigbee2MQTT) Devices(time.Time) []Device {
	devices := newMerger(len(z.devices))
	for _, each := range z.devices {
		presence := z.bridge
		if online, known := z.states.get(z.availability(each.name)); known && !online {
			presence = Offline
		}
		devices.add(each.name, Device{
			ID: each.address, Presence: presence, BaseTopic: z.base(each.name),
			Name: each.name, Manufacturer: each.manufacturer, Model: each.model, Version: each.version,
		})
	}
	return devices.list()
}
