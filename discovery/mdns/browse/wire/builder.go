package wire

import (
	"encoding/binary"
	"maps"
)

// MaxMessageBytes is the size of the largest message that a [Builder] makes. With the
// headers of IPv6 and UDP it fits in an Ethernet frame.
const MaxMessageBytes = 1440

// maxPointerOffset is the largest offset that a pointer can hold.
const maxPointerOffset = 1<<14 - 1

// offsets in the header.
const (
	questionCount = 4
	answerCount   = 6
)

// Builder makes a message. Create it with [NewQuery] or [NewResponse].
type Builder struct {
	packet []byte
	// names maps the keys of names to their offsets in packet.
	names map[string]int
}

// NewQuery returns a Builder for a query.
func NewQuery() *Builder {
	return &Builder{packet: make([]byte, headerBytes, 512), names: map[string]int{}}
}

// NewResponse returns a Builder for an authoritative response.
func NewResponse() *Builder {
	b := NewQuery()
	b.packet[2] = 0x84
	return b
}

// Bytes returns the message. It remains valid if more is added.
func (b *Builder) Bytes() []byte { return b.packet }

// Empty reports whether the message has neither questions nor answers.
func (b *Builder) Empty() bool { return len(b.packet) == headerBytes }

// Truncate marks a query as followed by more known answers.
func (b *Builder) Truncate() { b.packet[2] |= 0x02 }

// Question adds a question, before any answers. If it does not fit, the message is left
// as it is, and the result is false.
func (b *Builder) Question(question Question) bool {
	return b.add(questionCount, func() {
		b.name(question.Name)
		b.number(uint16(question.Type))
		b.number(classIN)
	})
}

// Answer adds an answer. If it does not fit, the message is left as it is, and the result
// is false.
func (b *Builder) Answer(record Record) bool {
	return b.add(answerCount, func() {
		b.name(record.Name)
		b.number(uint16(record.Type))
		class := uint16(classIN)
		if record.Flush {
			class |= topBit
		}
		b.number(class)
		b.packet = binary.BigEndian.AppendUint32(b.packet, record.TTL)
		length := len(b.packet)
		b.number(0)
		b.data(record)
		binary.BigEndian.PutUint16(b.packet[length:], uint16(len(b.packet)-length-2))
	})
}

func (b *Builder) data(record Record) {
	switch record.Type {
	case A, AAAA:
		b.packet = append(b.packet, record.Address.AsSlice()...)
	case TXT:
		b.packet = append(b.packet, record.Text...)
	case SRV:
		b.number(record.Priority)
		b.number(0)
		b.number(record.Port)
		b.name(record.Target)
	case PTR:
		b.name(record.Target)
	}
}

// add writes an entry of a section, unless it does not fit.
func (b *Builder) add(counter int, write func()) bool {
	before := len(b.packet)
	write()
	if len(b.packet) > MaxMessageBytes {
		b.packet = b.packet[:before]
		maps.DeleteFunc(b.names, func(_ string, offset int) bool { return offset >= before })
		return false
	}
	binary.BigEndian.PutUint16(b.packet[counter:], binary.BigEndian.Uint16(b.packet[counter:])+1)
	return true
}

func (b *Builder) number(value uint16) { b.packet = binary.BigEndian.AppendUint16(b.packet, value) }

// name writes a name, with a pointer to an end that the message already has.
func (b *Builder) name(name Name) {
	for ; name != ""; name = name.Parent() {
		key := name.Key()
		if offset, found := b.names[key]; found {
			b.number(0xc000 | uint16(offset))
			return
		}
		if len(b.packet) <= maxPointerOffset {
			b.names[key] = len(b.packet)
		}
		label := name.First()
		b.packet = append(append(b.packet, byte(len(label))), label...)
	}
	b.packet = append(b.packet, 0)
}
