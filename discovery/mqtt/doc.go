// Package mqtt is a discovery handler for devices that announce themselves at an MQTT
// broker, by one of several conventions or at topics that the Configuration describes.
//
// The decisions are in packages without clocks and connections: package convention knows
// what messages mean, package follow which devices there are. This package connects them
// with the broker (package connection) and with the agent.
//
// Always: one connection for each Configuration and agent, with a client id of its own;
// subscriptions have QoS 0, because brokers drop retained messages of higher QoS when there
// are many. Never: a message, unless rebirth is permitted.
package mqtt
