package browse

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"akri.sh/akri/discovery/mdns/browse/wire"
)

// recordsPerPacket is how many records of the usual size fit in a packet.
const recordsPerPacket = 12

// pack returns a response with these records.
func pack(t testing.TB, records ...wire.Record) []byte {
	t.Helper()
	message := dns.Msg{MsgHdr: dns.MsgHdr{Response: true, Authoritative: true}, Compress: true}
	for _, r := range records {
		header := dns.RR_Header{Name: string(r.Name) + ".", Rrtype: uint16(r.Type), Class: dns.ClassINET, Ttl: r.TTL}
		if r.Flush {
			header.Class |= 1 << 15
		}
		var rr dns.RR
		switch r.Type {
		case wire.PTR:
			rr = &dns.PTR{Hdr: header, Ptr: string(r.Target) + "."}
		case wire.SRV:
			rr = &dns.SRV{Hdr: header, Priority: r.Priority, Port: r.Port, Target: string(r.Target) + "."}
		case wire.TXT:
			rr = &dns.RFC3597{Hdr: header, Rdata: hex.EncodeToString([]byte(r.Text))}
		case wire.A:
			rr = &dns.A{Hdr: header, A: r.Address.AsSlice()}
		case wire.AAAA:
			rr = &dns.AAAA{Hdr: header, AAAA: r.Address.AsSlice()}
		}
		message.Answer = append(message.Answer, rr)
	}
	packet, err := message.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return packet
}

// formatText returns the data of a TXT record with these strings.
func formatText(texts ...string) string {
	var data strings.Builder
	for _, text := range texts {
		data.WriteByte(byte(len(text)))
		data.WriteString(text)
	}
	return cmp.Or(data.String(), "\x00")
}

// query is a question of the browser as a device reads it.
type query struct {
	wanted map[setKey]bool
	// known has the times to live of PTR records that are known, by name and target.
	known map[wire.Name]uint32
	// truncated means that more known answers follow.
	truncated bool
}

// parseQuery reads a query as devices do.
func parseQuery(packet []byte) (query, error) {
	var message dns.Msg
	if err := message.Unpack(packet); err != nil {
		return query{}, err
	}
	asked := query{wanted: map[setKey]bool{}, known: map[wire.Name]uint32{}, truncated: message.Truncated}
	if message.Response || len(packet) > wire.MaxQueryBytes {
		return query{}, fmt.Errorf("%d bytes: %v", len(packet), message)
	}
	for _, q := range message.Question {
		name, err := wire.ParseName(q.Name)
		if err != nil {
			return query{}, err
		}
		asked.wanted[setKey{name.Key(), wire.Type(q.Qtype)}] = true
	}
	for _, rr := range message.Answer {
		ptr, ok := rr.(*dns.PTR)
		if !ok {
			return query{}, fmt.Errorf("a known answer is %v", rr)
		}
		name, err := wire.ParseName(ptr.Hdr.Name)
		target, errOfTarget := wire.ParseName(ptr.Ptr)
		if err = errors.Join(err, errOfTarget); err != nil {
			return query{}, err
		}
		asked.known[name+" "+target] = ptr.Hdr.Ttl
	}
	return asked, nil
}
