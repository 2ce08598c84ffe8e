package wire

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/miekg/dns"
	"golang.org/x/net/dns/dnsmessage"
)

func TestNames(t *testing.T) {
	for text, want := range map[string]struct {
		name   Name
		labels []string
		key    string
	}{
		"local":                      {"local", []string{"local"}, "local"},
		"Printer._http._tcp.local.":  {"Printer._http._tcp.local", []string{"Printer", "_http", "_tcp", "local"}, "printer._http._tcp.local"},
		`Model 2\.1._http._tcp.x`:    {`Model 2\.1._http._tcp.x`, []string{"Model 2.1", "_http", "_tcp", "x"}, `model 2\.1._http._tcp.x`},
		`\065\066`:                   {"AB", []string{"AB"}, "ab"},
		`\255broken`:                 {`\255broken`, []string{"\xffbroken"}, `\255broken`},
		"Ä is not ASCII, so it stay": {"Ä is not ASCII, so it stay", []string{"Ä is not ASCII, so it stay"}, "Ä is not ascii, so it stay"},
		"":                           {"", nil, ""},
	} {
		t.Run(text, func(t *testing.T) {
			name, err := ParseName(text)
			if err != nil {
				t.Fatal(err)
			}
			if name != want.name || !slices.Equal(name.Labels(), want.labels) || name.Key() != want.key {
				t.Errorf("got %q, labels %q, key %q", name, name.Labels(), name.Key())
			}
			if len(want.labels) > 0 && name.First() != want.labels[0] {
				t.Errorf("the first label is %q", name.First())
			}
		})
	}
	for _, text := range []string{`end\`, "a..b", ".a", strings.Repeat("x", 64), strings.Repeat("abcdefg.", 32)} {
		if name, err := ParseName(text); err == nil {
			t.Errorf("%q was accepted as %q", text, name)
		}
	}
	if parent := Name(`a\.b.c.d`).Parent(); parent != "c.d" {
		t.Errorf("the parent is %q", parent)
	}
}

// formatText returns the data of a TXT record with these strings.
func formatText(texts ...string) string {
	var data strings.Builder
	for _, text := range texts {
		data.WriteByte(byte(len(text)))
		data.WriteString(text)
	}
	if data.Len() == 0 {
		return "\x00"
	}
	return data.String()
}

// records are one of each type.
func records() []Record {
	return []Record{
		{Name: "_http._tcp.local", Type: PTR, TTL: 4500, Target: `Printer 2\.1._http._tcp.local`},
		{Name: `Printer 2\.1._http._tcp.local`, Type: SRV, TTL: 120, Flush: true, Priority: 3, Port: 80, Target: "printer.local"},
		{Name: `Printer 2\.1._http._tcp.local`, Type: TXT, TTL: 4500, Flush: true, Text: formatText("path=/x", "flag")},
		{Name: "printer.local", Type: A, TTL: 120, Flush: true, Address: netip.MustParseAddr("192.0.2.7")},
		{Name: "printer.local", Type: AAAA, TTL: 120, Flush: true, Address: netip.MustParseAddr("2001:db8::7")},
	}
}

// pack returns a response with these records, which are written as package dns parses them.
func pack(t *testing.T, texts ...string) []byte {
	t.Helper()
	message := dns.Msg{MsgHdr: dns.MsgHdr{Response: true}, Compress: true}
	for _, text := range texts {
		rr, err := dns.NewRR(text)
		if err != nil {
			t.Fatal(err)
		}
		rr.Header().Class |= flushBit
		message.Answer = append(message.Answer, rr)
	}
	packet, err := message.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return packet
}

func TestParseResponse(t *testing.T) {
	got, err := ParseResponse(pack(t,
		`_http._tcp.local. 4500 IN PTR Printer\ 2\.1._http._tcp.local.`,
		`Printer\ 2\.1._http._tcp.local. 120 IN SRV 3 0 80 printer.local.`,
		`Printer\ 2\.1._http._tcp.local. 4500 IN TXT "path=/x" "flag"`,
		`printer.local. 120 IN A 192.0.2.7`,
		`printer.local. 120 IN AAAA 2001:db8::7`,
		`printer.local. 120 IN NSEC printer.local. A AAAA`,
	))
	if err != nil {
		t.Fatal(err)
	}
	want := records()
	for i := range want {
		want[i].Flush = true
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestNamesOfPackets: whatever bytes a name has, it becomes the same text as ever, which is
// the ID of a device, and the text becomes the same bytes again.
func TestNamesOfPackets(t *testing.T) {
	for label, want := range map[string]Name{
		"plain":                    "plain",
		"Printer 2.1":              `Printer 2\.1`,
		`back\slash`:               `back\\slash`,
		`\065`:                     `\\065`,
		"Küche, (1. Stock)":        `Küche, (1\. Stock)`,
		`a'b"c;d@e$f`:              `a'b"c;d@e$f`,
		"bell\a del\x7f":           `bell\007 del\127`,
		"\xff is not UTF-8":        `\255 is not UTF-8`,
		"half of ü: \xc3":          `half of ü: \195`,
		"\x00\x001":                `\000\0001`,
		"ends with dots..":         `ends with dots\.\.`,
		`ends with \`:              `ends with \\`,
		" spaces ":                 " spaces ",
		"\u200b\U0001f5a8":         "\u200b\U0001f5a8",
		strings.Repeat("\xff", 63): Name(strings.Repeat(`\255`, 63)),
	} {
		packet := slices.Concat([]byte{0, 0, 0x84, 0, 0, 0, 0, 1, 0, 0, 0, 0, byte(len(label))}, []byte(label),
			[]byte{5, 'l', 'o', 'c', 'a', 'l', 0, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 192, 0, 2, 1})
		records, err := ParseResponse(packet)
		if err != nil || len(records) != 1 || records[0].Name != want+".local" {
			t.Errorf("%q: %+v, %v", label, records, err)
			continue
		}
		if first := records[0].Name.First(); first != label {
			t.Errorf("%q became %q", label, first)
		}
		query := NewQuery()
		query.Ask(records[0].Name, A)
		if !bytes.Contains(query.Pack(), packet[headerBytes:headerBytes+1+len(label)+7]) {
			t.Errorf("%q is not in the question % x", label, query.Pack())
		}
	}
}

func TestQueryIsBounded(t *testing.T) {
	query, added := NewQuery(), 0
	for ; added < 1000; added++ {
		name := NewName(strings.Repeat(string(rune('a'+added%26)), 10+added%50), "_http", "_tcp", "local")
		if !query.Ask(name, SRV) {
			break
		}
	}
	var message dns.Msg
	err := message.Unpack(query.Pack())
	if err != nil || len(message.Question) != added || added < 20 || added > 200 || len(query.Pack()) > MaxQueryBytes {
		t.Errorf("%d questions in %d bytes, of %d: %v", len(message.Question), len(query.Pack()), added, err)
	}
}

// TestKnownAnswers: they are compressed, and those that do not fit are left to another packet.
func TestKnownAnswers(t *testing.T) {
	query, added := NewQuery(), 0
	query.Ask("_http._tcp.local", PTR)
	for ; added < 1000; added++ {
		if !query.Know("_http._tcp.local", NewName("Camera "+strings.Repeat("x", added%3), "_http", "_tcp", "local"), uint32(added)) {
			break
		}
	}
	query.Truncate()
	var message dns.Msg
	err := message.Unpack(query.Pack())
	if err != nil || message.Response || !message.Truncated || len(message.Question) != 1 || len(message.Answer) != added ||
		added < 50 || len(query.Pack()) > MaxQueryBytes {
		t.Errorf("%d answers of %d in %d bytes: %v", len(message.Answer), added, len(query.Pack()), err)
	}
	ptr, ok := message.Answer[1].(*dns.PTR)
	if !ok || ptr.Ptr != `Camera\ x._http._tcp.local.` || ptr.Hdr.Ttl != 1 || ptr.Hdr.Class != dns.ClassINET {
		t.Errorf("the second answer is %v", message.Answer[1])
	}
}

func TestHostilePackets(t *testing.T) {
	header := func(questions, answers byte) []byte {
		return []byte{0, 0, 0x84, 0, 0, questions, 0, answers, 0, 0, 0, 0}
	}
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	chain := header(0, 1)
	for i := range 40 { // each points to the previous one
		chain = append(chain, 1, 'a', 0xc0, byte(12+max(0, 4*(i-1))))
	}
	for name, packet := range map[string][]byte{
		"empty":                      nil,
		"a short header":             make([]byte, 11),
		"65535 questions and none":   {0, 0, 0x84, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0},
		"4 * 65535 entries and none": {0, 0, 0x84, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"a pointer into the header":  join(header(0, 1), []byte{0xc0, 2}),
		"half a pointer":             join(header(0, 1), []byte{0xc0}),
		"a label beyond the end":     join(header(0, 1), []byte{9, 'a'}),
		"a name without an end":      join(header(0, 1), []byte{1, 'a'}),
		"data beyond the end":        join(header(0, 1), []byte{0, 0, 1, 0, 1, 0, 0, 0, 9, 0, 200, 1}),
		"an error":                   {0, 0, 0x84, 3, 0, 0, 0, 0, 0, 0, 0, 0},
		"another operation":          {0, 0, 0xac, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		"a chain of pointers":        chain,
	} {
		t.Run(name, func(t *testing.T) {
			if records, err := ParseResponse(packet); err == nil || len(records) > 0 {
				t.Errorf("got %+v", records)
			}
		})
	}
}

// TestOneRecordThatCannotBeRead: devices that end each answer with such a record are found all
// the same, and only that record is lost if others follow.
func TestOneRecordThatCannotBeRead(t *testing.T) {
	before := pack(t, `_hap._tcp.local. 4500 IN PTR Lamp._hap._tcp.local.`, `lamp.local. 120 IN A 192.0.2.7`)
	after := []byte{1, 'h', 0, 0, 1, 0x80, 1, 0, 0, 0, 9, 0, 4, 192, 0, 2, 1}
	long := bytes.Repeat(append([]byte{63}, make([]byte, 63)...), 5)
	address := []byte{0, 1, 0, 1, 0, 0, 0, 120, 0, 4, 192, 0, 2, 9}
	for name, tc := range map[string]struct {
		bad    []byte
		others bool // that follow are read
		silent bool
	}{
		"a name that points to itself":   {slices.Concat([]byte{0xc0, byte(len(before))}, address), true, false},
		"a name that points forward":     {slices.Concat([]byte{1, 'x', 0xc1, 0xff}, address), true, false},
		"a long name":                    {slices.Concat(long, []byte{0}, address), true, false},
		"an unknown type of label":       {slices.Concat([]byte{0x41, 'a', 'b', 0}, address), false, false},
		"half a name":                    {[]byte{63, 'x'}, false, false},
		"data beyond the end":            {[]byte{0, 0, 1, 0, 1, 0, 0, 0, 120, 0, 200, 192}, false, false},
		"no record":                      {nil, true, false}, // the count is one too high
		"an address with three bytes":    {[]byte{0, 0, 1, 0, 1, 0, 0, 0, 9, 0, 3, 1, 2, 3}, true, false},
		"an IPv6 address with four":      {[]byte{0, 0, 28, 0, 1, 0, 0, 0, 9, 0, 4, 1, 2, 3, 4}, true, false},
		"a PTR record that ends early":   {[]byte{0, 0, 12, 0, 1, 0, 0, 0, 9, 0, 3, 5, 'a', 'b'}, true, false},
		"a PTR record with more":         {[]byte{0, 0, 12, 0, 1, 0, 0, 0, 9, 0, 4, 1, 'a', 0, 0}, true, false},
		"a PTR record to what follows":   {[]byte{0, 0, 12, 0, 1, 0, 0, 0, 9, 0, 2, 0xc1, 0xff}, true, false},
		"an SRV record without a name":   {[]byte{0, 0, 33, 0, 1, 0, 0, 0, 9, 0, 5, 0, 0, 0, 0, 0}, true, false},
		"an SRV record that ends early":  {[]byte{0, 0, 33, 0, 1, 0, 0, 0, 9, 0, 7, 0, 0, 0, 0, 0, 1, 63}, true, false},
		"another type":                   {[]byte{0, 0, 47, 0, 1, 0, 0, 0, 9, 0, 1, 0}, true, true},
		"another class":                  {[]byte{0, 0, 1, 0, 3, 0, 0, 0, 9, 0, 4, 1, 2, 3, 4}, true, true},
		"another type without its owner": {[]byte{0xc1, 0xff, 0, 47, 0, 1, 0, 0, 0, 9, 0, 1, 0}, true, true},
	} {
		packet := slices.Concat(before, tc.bad, after)
		packet[11] = 2 // additional records
		records, err := ParseResponse(packet)
		if len(records) < 2 || records[0].Target != "Lamp._hap._tcp.local" || (len(records) == 3) != tc.others || (err == nil) != tc.silent {
			t.Errorf("%s: %+v, %v", name, records, err)
		}
	}
}

func TestParseText(t *testing.T) {
	for name, tc := range map[string]struct {
		data string
		want []Pair
	}{
		"keys":               {formatText("a=1", "B=2=3"), []Pair{{"a", "1"}, {"B", "2=3"}}},
		"no value":           {formatText("flag", "empty="), []Pair{{"flag", ""}, {"empty", ""}}},
		"the first one wins": {formatText("Key=1", "KEY=2", "key"), []Pair{{"Key", "1"}}},
		"no key":             {formatText("=x", "", "a"), []Pair{{"a", ""}}},
		"binary":             {formatText("k=\x00\xff"), []Pair{{"k", "\x00\xff"}}},
		"empty":              {formatText(), nil},
		"no data at all":     {"", nil},
		"ends early":         {"\x01a\x09b", []Pair{{"a", ""}}},
	} {
		if got := ParseText(tc.data); !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// FuzzParse compares with x/net's parser, which refuses some names that are valid here, and
// checks that names that were read can be written and read again.
func FuzzParse(f *testing.F) {
	f.Add([]byte{0, 0, 0x84, 0, 0, 0, 0, 1, 0, 0, 0, 0, 3, 'a', '.', 0xff, 0, 0, 12, 0, 1, 0, 0, 0, 9, 0, 4, 1, '\\', 0xc0, 12})
	f.Add([]byte{0, 0, 0x84, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 'a', 0xc0, 12})
	f.Add([]byte{0, 0, 0x84, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, packet []byte) {
		records, err := ParseResponse(packet)
		for _, record := range records {
			ParseText(record.Text)
			for _, name := range []Name{record.Name, record.Target} {
				again, err := ParseName(string(name))
				if err != nil || again != name || NewName(name.Labels()...) != name {
					t.Fatalf("the name %q is %q after reading it: %v", name, again, err)
				}
			}
			query := NewQuery()
			query.Ask(record.Name, A)
			var message dns.Msg
			if err := message.Unpack(query.Pack()); err != nil || nameOf(message.Question[0].Name) != record.Name {
				t.Fatalf("the name %q became %v: %v", record.Name, message.Question, err)
			}
		}
		if err == nil {
			compare(t, packet, records)
		}
	})
}

// compare compares addresses with what x/net reads, if it can read the packet.
func compare(t *testing.T, packet []byte, records []Record) {
	t.Helper()
	var other dnsmessage.Message
	if other.Unpack(packet) != nil {
		return
	}
	var want, got []netip.Addr
	for _, resource := range slices.Concat(other.Answers, other.Authorities, other.Additionals) {
		if resource.Header.Class&^flushBit != dns.ClassINET {
			continue
		}
		switch body := resource.Body.(type) {
		case *dnsmessage.AResource:
			want = append(want, netip.AddrFrom4(body.A))
		case *dnsmessage.AAAAResource:
			want = append(want, netip.AddrFrom16(body.AAAA))
		}
	}
	for _, record := range records {
		if record.Address.IsValid() {
			got = append(got, record.Address)
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("addresses %v, but x/net reads %v", got, want)
	}
}
