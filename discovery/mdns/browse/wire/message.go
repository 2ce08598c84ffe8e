package wire

import (
	"encoding/binary"
	"errors"
	"net/netip"
)

// Type is the type of a record.
type Type uint16

// The types of records that are read; Any is for questions only.
const (
	A    Type = 1
	PTR  Type = 12
	TXT  Type = 16
	AAAA Type = 28
	SRV  Type = 33
	Any  Type = 255
)

const (
	headerBytes = 12
	classIN     = 1
	// topBit of a class is the cache-flush bit of a record, or requests a unicast
	// response to a question.
	topBit = 1 << 15

	// maxPointers bounds the pointers of one name. Other implementations need one for
	// each level of names that share an end.
	maxPointers = 16
)

// Message is a message, without the records of other types and classes.
type Message struct {
	// Response distinguishes responses from queries.
	Response bool
	// Truncated means, in a query, that more known answers follow.
	Truncated bool
	Questions []Question
	// Records are those of all sections.
	Records []Record
}

// Question requests records.
type Question struct {
	Name Name
	Type Type
}

// Record is a resource record. Which of the fields below TTL it has depends on its type.
type Record struct {
	Name Name
	Type Type
	// Flush is the cache-flush bit: the records of this name and type in this message
	// replace all older ones.
	Flush bool
	// TTL is in seconds. 0 announces the end of the record.
	TTL uint32

	// Target is the name that a PTR or SRV record refers to.
	Target Name
	// Priority and Port are of SRV records.
	Priority uint16
	Port     uint16
	// Text is the unchanged data of a TXT record.
	Text string
	// Address is that of an A or AAAA record.
	Address netip.Addr
}

var (
	errShort   = errors.New("the message ends early")
	errPointer = errors.New("a name has a pointer that leads forward, or too many")
	errLabel   = errors.New("a label has an unknown type")
	errName    = errors.New("a name is too long")
	errHeader  = errors.New("not a standard query, or an error")
)

// IsResponse reports whether a packet may be a response, without reading all of it.
func IsResponse(packet []byte) bool { return len(packet) >= headerBytes && packet[2]&0x80 != 0 }

// Parse reads a message. Records whose data make no sense are left out; if the message
// itself is malformed, none is trusted.
func Parse(packet []byte) (Message, error) {
	if len(packet) < headerBytes {
		return Message{}, errShort
	}
	flags := binary.BigEndian.Uint16(packet[2:])
	if flags&0x780f != 0 { // the operation and the result
		return Message{}, errHeader
	}
	message := Message{Response: flags&0x8000 != 0, Truncated: flags&0x0200 != 0}
	r := reader{packet: packet, at: headerBytes}
	for range binary.BigEndian.Uint16(packet[4:]) {
		question, err := r.question()
		if err != nil {
			return Message{}, err
		}
		message.Questions = append(message.Questions, question)
	}
	records := 0
	for section := 6; section < headerBytes; section += 2 {
		records += int(binary.BigEndian.Uint16(packet[section:]))
	}
	for range records {
		record, ok, err := r.record()
		if err != nil {
			return Message{}, err
		}
		if ok {
			message.Records = append(message.Records, record)
		}
	}
	return message, nil
}

// reader reads a packet from left to right.
type reader struct {
	packet []byte
	at     int
}

func (r *reader) question() (Question, error) {
	name, err := r.name()
	if err != nil {
		return Question{}, err
	}
	fixed, err := r.take(4)
	if err != nil {
		return Question{}, err
	}
	return Question{Name: name, Type: Type(binary.BigEndian.Uint16(fixed))}, nil
}

// record reads a record. It is not ok if it has another type or class, or data that make
// no sense.
func (r *reader) record() (record Record, ok bool, err error) {
	name, err := r.name()
	if err != nil {
		return Record{}, false, err
	}
	fixed, err := r.take(10)
	if err != nil {
		return Record{}, false, err
	}
	class := binary.BigEndian.Uint16(fixed[2:])
	record = Record{
		Name: name, Type: Type(binary.BigEndian.Uint16(fixed)), Flush: class&topBit != 0, TTL: binary.BigEndian.Uint32(fixed[4:]),
	}
	start := r.at
	data, err := r.take(int(binary.BigEndian.Uint16(fixed[8:])))
	if err != nil || class&^topBit != classIN {
		return Record{}, false, err
	}
	// Names in the data may point to all that precedes them, but must end with the data.
	within := reader{packet: r.packet[:r.at], at: start}
	return record, record.read(&within, data), nil
}

// read reads the data of a record.
func (r *Record) read(within *reader, data []byte) bool {
	switch r.Type {
	case A, AAAA:
		address, ok := netip.AddrFromSlice(data)
		r.Address = address
		return ok && address.Is4() == (r.Type == A)
	case TXT:
		r.Text = string(data)
		return true
	case SRV:
		fixed, err := within.take(6)
		if err != nil {
			return false
		}
		r.Priority, r.Port = binary.BigEndian.Uint16(fixed), binary.BigEndian.Uint16(fixed[4:])
	case PTR:
	default:
		return false
	}
	target, err := within.name()
	r.Target = target
	return err == nil && within.at == len(within.packet)
}

func (r *reader) take(count int) ([]byte, error) {
	if count > len(r.packet)-r.at {
		return nil, errShort
	}
	data := r.packet[r.at : r.at+count]
	r.at += count
	return data, nil
}

// name reads a name, which may be compressed.
func (r *reader) name() (Name, error) {
	var labels []string
	at, end, size := r.at, -1, 1
	for pointers := 0; ; {
		if at >= len(r.packet) {
			return "", errShort
		}
		length := int(r.packet[at])
		switch {
		case length == 0:
			if end < 0 {
				end = at + 1
			}
			r.at = end
			return NewName(labels...)
		case length >= 0xc0:
			if at+1 >= len(r.packet) {
				return "", errShort
			}
			if end < 0 {
				end = at + 2
			}
			target := (length&0x3f)<<8 | int(r.packet[at+1])
			if pointers++; target >= at || target < headerBytes || pointers > maxPointers {
				return "", errPointer
			}
			at = target
		case length > maxLabelBytes:
			return "", errLabel
		case at+1+length > len(r.packet):
			return "", errShort
		default:
			if size += 1 + length; size > maxNameBytes {
				return "", errName
			}
			labels = append(labels, string(r.packet[at+1:at+1+length]))
			at += 1 + length
		}
	}
}
