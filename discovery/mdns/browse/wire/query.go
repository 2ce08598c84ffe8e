package wire

import "github.com/miekg/dns"

// MaxQueryBytes is the size of the largest query. With the headers of IPv6 and UDP it fits
// in an Ethernet frame.
const MaxQueryBytes = 1440

// Query is a query with the answers that are known. Create it with [NewQuery].
type Query struct{ message dns.Msg }

// NewQuery returns a query without questions.
func NewQuery() *Query { return &Query{dns.Msg{Compress: true}} }

// Ask adds a question. If it does not fit, the query is left as it is, and the result is
// false.
func (q *Query) Ask(name Name, kind Type) bool {
	former, question := q.message.Question, dns.Question{Name: name.text(), Qtype: uint16(kind), Qclass: dns.ClassINET}
	q.message.Question = append(former, question)
	if q.message.Len() > MaxQueryBytes {
		q.message.Question = former
		return false
	}
	return true
}

// Know adds a PTR record that need not be repeated. If it does not fit, the query is left
// as it is, and the result is false.
func (q *Query) Know(name, target Name, ttl uint32) bool {
	header := dns.RR_Header{Name: name.text(), Rrtype: dns.TypePTR, Class: dns.ClassINET, Ttl: ttl}
	former, ptr := q.message.Answer, &dns.PTR{Hdr: header, Ptr: target.text()}
	q.message.Answer = append(former, ptr)
	if q.message.Len() > MaxQueryBytes {
		q.message.Answer = former
		return false
	}
	return true
}

// Empty reports whether the query has neither questions nor answers.
func (q *Query) Empty() bool { return len(q.message.Question)+len(q.message.Answer) == 0 }

// Truncate marks the query as followed by more known answers.
func (q *Query) Truncate() { q.message.Truncated = true }

// Pack returns the packet.
func (q *Query) Pack() []byte {
	packet, _ := q.message.Pack() // it fails only for names that are not valid
	return packet
}
