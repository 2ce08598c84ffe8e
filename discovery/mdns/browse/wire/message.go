package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/miekg/dns"
)

// Type is the type of a record.
type Type uint16

// The types of records that are read.
const (
	A    = Type(dns.TypeA)
	PTR  = Type(dns.TypePTR)
	TXT  = Type(dns.TypeTXT)
	AAAA = Type(dns.TypeAAAA)
	SRV  = Type(dns.TypeSRV)
)

const (
	// MaxPacketBytes is the size of the largest packet that mDNS permits.
	MaxPacketBytes = 9000

	headerBytes = 12
	// fixedBytes are those of a record between its name and its data.
	fixedBytes = 10
	// flushBit of a class is the cache-flush bit of a record.
	flushBit = 1 << 15
)

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
	errHeader = errors.New("not a standard response, or an error")
	errShort  = errors.New("the message ends early")
	errData   = errors.New("its data do not match its type")
)

// IsResponse reports whether a packet may be a response, without reading all of it.
func IsResponse(packet []byte) bool { return len(packet) >= headerBytes && packet[2]&0x80 != 0 }

// ParseResponse returns the records of all sections of a response, without those of other
// types and classes. The error is about what cannot be read: some devices end each of their
// answers with a record that nobody can read, and the other records are returned all the same.
func ParseResponse(packet []byte) ([]Record, error) {
	if !IsResponse(packet) || binary.BigEndian.Uint16(packet[2:])&0x780f != 0 { // the operation and the result
		return nil, errHeader
	}
	at := headerBytes
	for range binary.BigEndian.Uint16(packet[4:]) {
		_, next, err := unpackName(packet, at)
		if next == 0 {
			return nil, fmt.Errorf("question: %w", err)
		}
		at = next + 4
	}
	count := 0
	for section := 6; section < headerBytes; section += 2 {
		count += int(binary.BigEndian.Uint16(packet[section:]))
	}
	var records []Record
	var unread error
	for i := range count {
		record, next, err := parseRecord(packet, at)
		if err != nil {
			unread = fmt.Errorf("record %d of %d: %w", i+1, count, err)
		} else if record.Name != "" {
			records = append(records, record)
		}
		if next == 0 {
			break
		}
		at = next
	}
	return records, unread
}

// parseRecord reads the record at an offset, and returns the offset of the next one; 0 if
// nobody knows it. The record has no name if it has another type or class.
func parseRecord(packet []byte, at int) (record Record, next int, err error) {
	name, at, unread := unpackName(packet, at)
	if at == 0 {
		return Record{}, 0, unread
	}
	if at+fixedBytes > len(packet) {
		return Record{}, 0, errShort
	}
	fixed, data := packet[at:], at+fixedBytes
	next = data + int(binary.BigEndian.Uint16(fixed[8:]))
	if next > len(packet) {
		return Record{}, 0, errShort
	}
	class := binary.BigEndian.Uint16(fixed[2:])
	record = Record{Type: Type(binary.BigEndian.Uint16(fixed)), Flush: class&flushBit != 0, TTL: binary.BigEndian.Uint32(fixed[4:])}
	switch {
	case class&^flushBit != dns.ClassINET || !slices.Contains([]Type{A, AAAA, PTR, SRV, TXT}, record.Type):
		return Record{}, next, nil
	case unread == nil && !record.parse(packet[:next], data):
		unread = errData
	}
	record.Name = nameOf(name)
	return record, next, unread
}

// unpackName reads the name at an offset, and returns the offset of what follows, also if the
// name makes no sense; 0 if nobody knows it.
func unpackName(packet []byte, at int) (name string, next int, err error) {
	if name, next, err = dns.UnpackDomainName(packet, at); err == nil {
		return name, next, nil
	}
	for at < len(packet) && packet[at] > 0 && packet[at] < 0x40 {
		at += 1 + int(packet[at])
	}
	switch {
	case at >= len(packet) || packet[at] > 0 && packet[at] < 0xc0:
		return "", 0, err
	case packet[at] > 0: // a pointer ends a name
		at++
	}
	return "", at + 1, err
}

// parse reads the data of a record, which begin at an offset and end with the packet. Names
// in them may point to what precedes them.
func (r *Record) parse(packet []byte, at int) bool {
	data := packet[at:]
	switch r.Type {
	case A, AAAA:
		address, ok := netip.AddrFromSlice(data)
		r.Address = address
		return ok && address.Is4() == (r.Type == A)
	case TXT:
		r.Text = string(data)
		return true
	case SRV:
		if len(data) < 6 {
			return false
		}
		r.Priority, r.Port, at = binary.BigEndian.Uint16(data), binary.BigEndian.Uint16(data[4:]), at+6
	}
	target, end, err := dns.UnpackDomainName(packet, at)
	r.Target = nameOf(target)
	return err == nil && end == len(packet)
}
