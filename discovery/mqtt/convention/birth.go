package convention

import (
	"cmp"
	"time"

	"google.golang.org/protobuf/proto"

	sparkplugpb "akri.sh/akri/discovery/mqtt/sparkplug"
)

// datatypeBoolean is the type of a metric that is a Boolean.
const datatypeBoolean = 11

// birth is what matters of a birth or a death.
type birth struct {
	born                         bool
	sequence                     birthSequence
	manufacturer, model, version string
}

// birthSequence is the metric bdSeq, which an edge node's birth and last will share.
type birthSequence struct {
	known bool
	value uint64
}

func (b birth) device(id, base, name string, presence Presence) Device {
	return Device{
		ID: id, BaseTopic: base, Name: name, Presence: presence, Manufacturer: b.manufacturer, Model: b.model, Version: b.version,
	}
}

// parseBirth parses a payload of Sparkplug B.
func parseBirth(data []byte) (birth, bool) {
	var payload sparkplugpb.Payload
	if (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, &payload) != nil {
		return birth{}, false
	}
	parsed := birth{born: true}
	for _, metric := range payload.GetMetrics() {
		text := metric.GetStringValue()
		switch metric.GetName() {
		case "bdSeq":
			parsed.sequence = birthSequence{true, cmp.Or(metric.GetLongValue(), uint64(metric.GetIntValue()))}
		case "Properties/Hardware Make":
			parsed.manufacturer = clean(text)
		case "Properties/Hardware Model":
			parsed.model = clean(text)
		case "Properties/FW", "Properties/Firmware Version", "Properties/OS Version":
			parsed.version = cmp.Or(parsed.version, clean(text))
		}
	}
	return parsed, true
}

// rebirthCommand returns the payload of a command that makes an edge node repeat its birth.
func rebirthCommand(now time.Time) []byte {
	milliseconds := new(uint64(now.UnixMilli()))
	data, _ := proto.Marshal(&sparkplugpb.Payload{Timestamp: milliseconds, Metrics: []*sparkplugpb.Payload_Metric{{ // has no required field
		Name: new("Node Control/Rebirth"), Timestamp: milliseconds, Datatype: new(uint32(datatypeBoolean)),
		Value: &sparkplugpb.Payload_Metric_BooleanValue{BooleanValue: true},
	}}})
	return data
}
