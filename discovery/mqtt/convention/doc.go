// Package convention understands how devices announce themselves at an MQTT broker. Each
// convention is a state machine that is given messages and returns devices.
//
// Start with [Convention]. announced.go is the state of conventions whose announcements name
// topics of availability; homeassistant.go, tasmota.go, zigbee2mqtt.go and topics.go are what
// distinguishes these. A device of Homie is described by several topics (homie.go). Both keep
// the last message of each topic, reduced to what matters (records.go). Sparkplug's messages
// are not retained and depend on their order, so sparkplug.go keeps the state of edge nodes.
//
// Always: the devices do not depend on the order in which retained messages arrive; what a
// network can send is bounded in number and size. Never: a clock, a goroutine, a
// connection.
package convention
