// Package convention understands how devices announce themselves at an MQTT broker. Each
// convention is a state machine that is given messages and returns devices.
//
// Start with [Convention]. homie.go, homeassistant.go, tasmota.go, zigbee2mqtt.go and
// topics.go keep the last message of each topic, reduced to what matters, and derive the
// devices from these records. Sparkplug's messages are not retained and depend on their
// order, so sparkplug.go keeps the state of edge nodes.
//
// Always: the devices do not depend on the order in which retained messages arrive; what a
// network can send is bounded in number, size and depth. Never: a clock, a goroutine, a
// connection.
package convention
