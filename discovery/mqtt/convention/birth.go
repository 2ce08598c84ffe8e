package convention

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of Sparkplug B's Payload and Metric (sparkplug_b.proto), as far as births
// and commands need them.
const (
	fieldTimestamp = 1
	fieldMetrics   = 2

	fieldName         = 1
	fieldMetricTime   = 3
	fieldDatatype     = 4
	fieldInt          = 10
	fieldLong         = 11
	fieldBooleanValue = 14
	fieldString       = 15

	datatypeBoolean = 11
)

// maxMetrics bounds the metrics of a birth.
const maxMetrics = 10_000

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

func (b birth) size() int { return len(b.manufacturer) + len(b.model) + len(b.version) }

func (b birth) device(id, base, name string, presence Presence) Device {
	return Device{
		ID: id, BaseTopic: base, Name: name, Presence: presence, Manufacturer: b.manufacturer, Model: b.model, Version: b.version,
	}
}

// metric is a metric of a payload.
type metric struct {
	name, text string
	number     uint64
}

// parseBirth parses a payload of Sparkplug B.
func parseBirth(payload []byte) (birth, bool) {
	parsed, count := birth{born: true}, 0
	ok := fields(payload, func(number protowire.Number, value []byte, _ uint64) bool {
		if number != fieldMetrics || value == nil {
			return true
		}
		if count++; count > maxMetrics {
			return false
		}
		m, ok := parseMetric(value)
		if !ok {
			return false
		}
		switch m.name {
		case "bdSeq":
			parsed.sequence = birthSequence{true, m.number}
		case "Properties/Hardware Make":
			parsed.manufacturer = clean(m.text)
		case "Properties/Hardware Model":
			parsed.model = clean(m.text)
		case "Properties/FW", "Properties/Firmware Version", "Properties/OS Version":
			if parsed.version == "" {
				parsed.version = clean(m.text)
			}
		}
		return true
	})
	return parsed, ok
}

func parseMetric(data []byte) (metric, bool) {
	var m metric
	ok := fields(data, func(number protowire.Number, value []byte, integer uint64) bool {
		switch number {
		case fieldName:
			m.name = string(value[:min(len(value), maxValueBytes)])
		case fieldString:
			m.text = string(value[:min(len(value), maxValueBytes)])
		case fieldInt, fieldLong:
			m.number = integer
		}
		return true
	})
	return m, ok
}

// fields calls visit for each field of a protobuf message, until it returns false. value is
// nil for fields without a length. It reports whether the message is valid and was visited
// to its end. Groups, which Sparkplug does not have, are not valid.
func fields(data []byte, visit func(number protowire.Number, value []byte, integer uint64) bool) bool {
	for len(data) > 0 {
		number, kind, length := protowire.ConsumeTag(data)
		if length < 0 || kind == protowire.StartGroupType || kind == protowire.EndGroupType {
			return false
		}
		data = data[length:]
		var value []byte
		var integer uint64
		switch kind {
		case protowire.BytesType:
			if value, length = protowire.ConsumeBytes(data); value == nil {
				value = []byte{}
			}
		case protowire.VarintType:
			integer, length = protowire.ConsumeVarint(data)
		default:
			length = protowire.ConsumeFieldValue(number, kind, data)
		}
		if length < 0 || !visit(number, value, integer) {
			return false
		}
		data = data[length:]
	}
	return true
}

// rebirthCommand returns the payload of a command that makes an edge node repeat its birth.
func rebirthCommand(now time.Time) []byte {
	milliseconds := uint64(now.UnixMilli())
	var m []byte
	m = protowire.AppendTag(m, fieldName, protowire.BytesType)
	m = protowire.AppendString(m, "Node Control/Rebirth")
	m = protowire.AppendTag(m, fieldMetricTime, protowire.VarintType)
	m = protowire.AppendVarint(m, milliseconds)
	m = protowire.AppendTag(m, fieldDatatype, protowire.VarintType)
	m = protowire.AppendVarint(m, datatypeBoolean)
	m = protowire.AppendTag(m, fieldBooleanValue, protowire.VarintType)
	m = protowire.AppendVarint(m, 1)
	var payload []byte
	payload = protowire.AppendTag(payload, fieldTimestamp, protowire.VarintType)
	payload = protowire.AppendVarint(payload, milliseconds)
	payload = protowire.AppendTag(payload, fieldMetrics, protowire.BytesType)
	return protowire.AppendBytes(payload, m)
}
