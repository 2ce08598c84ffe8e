package convention

import (
	"time"

	"akri.sh/akri/discovery/mqtt/details"
)

// Message is a message that the broker has delivered.
type Message struct {
	Topic   string
	Payload []byte
}

// Presence says whether a device can be used.
type Presence int

// The values of Presence.
const (
	Online Presence = iota
	// Offline is a device that has announced itself, but has disconnected.
	Offline
	// Unsettled is a device that starts or reconfigures itself: if it was online, it still
	// is.
	Unsettled
)

// Device is a device that has announced itself.
type Device struct {
	ID       string
	Presence Presence
	// BaseTopic is the beginning of the device's topics.
	BaseTopic                          string
	Name, Manufacturer, Model, Version string
	// More are further properties by name; may be nil.
	More map[string]string
}

// Effect is the effect of a message.
type Effect struct {
	// Devices reports whether the results of Devices and Filters may have changed.
	Devices bool
	// Fault is the reason why the message, or a part of it, was ignored; empty if it was not.
	// Subject is the part that was ignored.
	Fault, Subject string
}

// The reasons why a message is ignored.
const (
	// FaultMalformed is a payload that is not what the convention requires.
	FaultMalformed = "malformed_payload"
	// FaultTooLarge is a payload, or an announcement, with too much text.
	FaultTooLarge = "payload_too_large"
	// FaultTooMany is a topic beyond the bounds of a list of devices.
	FaultTooMany = "too_many_topics"
	// FaultTemplate is a template of Home Assistant that is not supported. Only the topic
	// of availability that has it is ignored.
	FaultTemplate = "unsupported_template"
	// FaultTopic is a topic that the handler may not subscribe to, or that Home Assistant
	// would not accept.
	FaultTopic = "invalid_topic"
)

// Convention is the state of the devices that follow a convention. It is not safe for
// concurrent use.
type Convention interface {
	// Filters returns the topics to subscribe to. They may depend on the messages.
	Filters() []string
	// Apply handles a message of these topics. It does not keep the payload.
	Apply(message Message, now time.Time) Effect
	// Devices returns the devices, each once.
	Devices() []Device
	// Begin begins a new list of all retained messages. connected says that the connection
	// is new, so that messages may have been lost.
	Begin(connected bool, now time.Time)
	// End ends the list: retained messages that it did not have are forgotten.
	End()
}

// Commander is a Convention that sends messages to devices.
type Commander interface {
	// Commands returns the messages to send now, and forgets them.
	Commands(now time.Time) []Message
	// Due returns when to call Commands; zero for never.
	Due() time.Time
}

// MaxPayload returns the size of the largest payload that a convention handles, in bytes.
func MaxPayload(c details.Convention) int {
	if c == details.Zigbee2MQTT {
		return maxBridgePayload
	}
	return maxPayload
}

// New returns the empty state of a Configuration's convention.
func New(d *details.Details) Convention {
	switch d.Convention {
	case details.Sparkplug:
		return newSparkplug(d.Rebirth)
	case details.HomeAssistant:
		return newAnnounced(homeAssistant{d.Prefix})
	case details.Tasmota:
		return newAnnounced(tasmota{d.Prefix})
	case details.Zigbee2MQTT:
		return newAnnounced(zigbee2MQTT{d.Prefix})
	case details.Topics:
		return newAnnounced(newTopics(d.Topics))
	default:
		return newHomie(d.Prefix)
	}
}
