// Package embeddable lists the built-in handlers that can run in the agent's process:
// debugEcho, onvif, opcua and udev, as in the full build of Akri's agent.
//
// akri-discovery serves one of them, with the options in its flags. akri-agent serves
// those that [Select] finds, with the defaults. Both create them here, so that they find
// the same devices.
//
// Always: the options that Select chooses are the defaults of the handler's command.
// Never: the handlers mqtt, mdns and http, whose clients would cost every agent memory.
package embeddable
