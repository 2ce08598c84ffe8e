package wire

import (
	"bytes"
	"errors"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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
		`back\\slash`:                {`back\\slash`, []string{`back\slash`}, `back\\slash`},
		`\065\066`:                   {"AB", []string{"AB"}, "ab"},
		`bell\007`:                   {`bell\007`, []string{"bell\a"}, `bell\007`},
		`Küche`:                      {`Küche`, []string{"Küche"}, "küche"},
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
	for _, text := range []string{`end\`, `\25`, `\256`, `\2x5`, "a..b", ".a", strings.Repeat("x", 64), strings.Repeat("abcdefg.", 32)} {
		if name, err := ParseName(text); err == nil {
			t.Errorf("%q was accepted as %q", text, name)
		}
	}
	if parent := Name(`a\.b.c.d`).Parent(); parent != "c.d" {
		t.Errorf("the parent is %q", parent)
	}
}

// records are one of each type.
func records() []Record {
	return []Record{
		{Name: "_http._tcp.local", Type: PTR, TTL: 4500, Target: `Printer 2\.1._http._tcp.local`},
		{Name: `Printer 2\.1._http._tcp.local`, Type: SRV, TTL: 120, Flush: true, Priority: 3, Port: 80, Target: "printer.local"},
		{Name: `Printer 2\.1._http._tcp.local`, Type: TXT, TTL: 4500, Flush: true, Text: FormatText("path=/x", "flag")},
		{Name: "printer.local", Type: A, TTL: 120, Flush: true, Address: netip.MustParseAddr("192.0.2.7")},
		{Name: "printer.local", Type: AAAA, TTL: 120, Flush: true, Address: netip.MustParseAddr("2001:db8::7")},
	}
}

func TestRoundTrip(t *testing.T) {
	builder := NewResponse()
	for _, record := range records() {
		if !builder.Answer(record) {
			t.Fatal("it does not fit")
		}
	}
	message, err := Parse(builder.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(records(), message.Records, cmpopts.EquateComparable(netip.Addr{})); !message.Response || diff != "" {
		t.Errorf("response: %t, records: -want +got\n%s", message.Response, diff)
	}
	if size := len(builder.Bytes()); size > 190 {
		t.Errorf("%d bytes: the names are not compressed", size)
	}
}

func TestBuilderIsBounded(t *testing.T) {
	builder, added := NewQuery(), 0
	for ; added < 1000; added++ {
		name, _ := NewName(strings.Repeat(string(rune('a'+added%26)), 10+added%50), "_http", "_tcp", "local")
		if !builder.Question(Question{Name: name, Type: SRV}) {
			break
		}
	}
	message, err := Parse(builder.Bytes())
	if err != nil || len(message.Questions) != added || added < 20 || added > 200 || len(builder.Bytes()) > MaxMessageBytes {
		t.Errorf("%d questions in %d bytes, of %d: %v", len(message.Questions), len(builder.Bytes()), added, err)
	}
	// What did not fit left no name behind that others could point to.
	if !builder.Question(Question{Name: "z.local", Type: A}) {
		t.Skip("not even that fits")
	}
	if message, err = Parse(builder.Bytes()); err != nil || message.Questions[added].Name != "z.local" {
		t.Errorf("the last question: %v, %v", message.Questions[added], err)
	}
}

func TestHostilePackets(t *testing.T) {
	header := func(questions, answers byte) []byte {
		return []byte{0, 0, 0x84, 0, 0, questions, 0, answers, 0, 0, 0, 0}
	}
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	long := bytes.Repeat([]byte{63, 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x',
		'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x',
		'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x'}, 5)
	chain := header(0, 1)
	for i := range 40 { // each points to the previous one
		chain = append(chain, 1, 'a', 0xc0, byte(12+max(0, 4*(i-1))))
	}
	for name, tc := range map[string]struct {
		packet []byte
		want   error
	}{
		"empty":                             {nil, errShort},
		"a short header":                    {make([]byte, 11), errShort},
		"65535 questions and none":          {[]byte{0, 0, 0x84, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0}, errShort},
		"4 * 65535 entries and none":        {[]byte{0, 0, 0x84, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, errShort},
		"a pointer to itself":               {join(header(0, 1), []byte{0xc0, 12}), errPointer},
		"a pointer forward":                 {join(header(0, 1), []byte{0xc0, 14, 0}), errPointer},
		"a pointer into the header":         {join(header(0, 1), []byte{0xc0, 2}), errPointer},
		"half a pointer":                    {join(header(0, 1), []byte{0xc0}), errShort},
		"a loop of labels":                  {join(header(0, 1), []byte{1, 'a', 0xc0, 12}), errPointer},
		"a label of a type from the future": {join(header(0, 1), []byte{0x41, 0}), errLabel},
		"a label beyond the end":            {join(header(0, 1), []byte{9, 'a'}), errShort},
		"a name without an end":             {join(header(0, 1), []byte{1, 'a'}), errShort},
		"a name that is too long":           {join(header(0, 1), long, []byte{0}), errName},
		"data beyond the end":               {join(header(0, 1), []byte{0, 0, 1, 0, 1, 0, 0, 0, 9, 0, 200, 1}), errShort},
		"an error":                          {[]byte{0, 0, 0x84, 3, 0, 0, 0, 0, 0, 0, 0, 0}, errHeader},
		"another operation":                 {[]byte{0, 0, 0xac, 0, 0, 0, 0, 0, 0, 0, 0, 0}, errHeader},
	} {
		t.Run(name, func(t *testing.T) {
			if message, err := Parse(tc.packet); !errors.Is(err, tc.want) {
				t.Errorf("got %+v, %v, want %v", message, err, tc.want)
			}
		})
	}
	if _, err := Parse(chain); err == nil {
		t.Error("a chain of pointers was accepted")
	}
}

// TestMalformedRecordsAreLeftOut: one bad record does not hide the others.
func TestMalformedRecordsAreLeftOut(t *testing.T) {
	bad := [][]byte{
		{0, 0, 1, 0, 1, 0, 0, 0, 9, 0, 3, 1, 2, 3},               // an A record with 3 bytes
		{0, 0, 28, 0, 1, 0, 0, 0, 9, 0, 4, 1, 2, 3, 4},           // an AAAA record with 4
		{0, 0, 12, 0, 1, 0, 0, 0, 9, 0, 3, 5, 'a', 'b'},          // a PTR record that ends early
		{0, 0, 12, 0, 1, 0, 0, 0, 9, 0, 4, 1, 'a', 0, 0},         // a PTR record with more than a name
		{0, 0, 33, 0, 1, 0, 0, 0, 9, 0, 5, 0, 0, 0, 0, 0},        // an SRV record without a name
		{0, 0, 47, 0, 1, 0, 0, 0, 9, 0, 1, 0},                    // another type
		{0, 0, 1, 0, 3, 0, 0, 0, 9, 0, 4, 1, 2, 3, 4},            // another class
		{0, 0, 12, 0, 1, 0, 0, 0, 9, 0, 2, 0xc0, 0xff},           // a PTR record that points forward
		{0, 0, 33, 0, 1, 0, 0, 0, 9, 0, 7, 0, 0, 0, 0, 0, 1, 63}, // an SRV record that ends early
	}
	packet := []byte{0, 0, 0x84, 0, 0, 0, 0, byte(len(bad) + 1), 0, 0, 0, 0}
	packet = append(packet, bytes.Join(bad, nil)...)
	packet = append(packet, 1, 'h', 0, 0, 1, 0x80, 1, 0, 0, 0, 9, 0, 4, 192, 0, 2, 1)
	message, err := Parse(packet)
	want := []Record{{Name: "h", Type: A, Flush: true, TTL: 9, Address: netip.MustParseAddr("192.0.2.1")}}
	if diff := cmp.Diff(want, message.Records, cmpopts.EquateComparable(netip.Addr{})); err != nil || diff != "" {
		t.Errorf("%v: -want +got\n%s", err, diff)
	}
}

func TestParseText(t *testing.T) {
	for name, tc := range map[string]struct {
		data string
		want []Pair
	}{
		"keys":               {FormatText("a=1", "B=2=3"), []Pair{{"a", "1"}, {"B", "2=3"}}},
		"no value":           {FormatText("flag", "empty="), []Pair{{"flag", ""}, {"empty", ""}}},
		"the first one wins": {FormatText("Key=1", "KEY=2", "key"), []Pair{{"Key", "1"}}},
		"no key":             {FormatText("=x", "", "a"), []Pair{{"a", ""}}},
		"binary":             {FormatText("k=\x00\xff"), []Pair{{"k", "\x00\xff"}}},
		"empty":              {FormatText(), nil},
		"no data at all":     {"", nil},
		"ends early":         {"\x01a\x09b", []Pair{{"a", ""}}},
	} {
		if got := ParseText(tc.data); !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// FuzzParse compares with x/net's parser, which refuses some names that are valid here, and
// checks that what was read can be written and read again.
func FuzzParse(f *testing.F) {
	builder := NewResponse()
	for _, record := range records() {
		builder.Answer(record)
	}
	f.Add(builder.Bytes())
	query := NewQuery()
	query.Question(Question{Name: "_http._tcp.local", Type: PTR})
	query.Answer(records()[0])
	f.Add(query.Bytes())
	f.Add([]byte{0, 0, 0x84, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 'a', 0xc0, 12})
	f.Add([]byte{0, 0, 0x84, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, packet []byte) {
		message, err := Parse(packet)
		if err != nil {
			return
		}
		for _, record := range message.Records {
			ParseText(record.Text)
			again, err := ParseName(string(record.Name))
			if err != nil || again != record.Name {
				t.Fatalf("the name %q is %q after reading it: %v", record.Name, again, err)
			}
			builder := NewResponse()
			if !builder.Answer(record) {
				continue // too large
			}
			copied, err := Parse(builder.Bytes())
			if err != nil || len(copied.Records) != 1 || !reflect.DeepEqual(copied.Records[0], record) {
				t.Fatalf("%+v became %+v: %v", record, copied.Records, err)
			}
		}
		compare(t, packet, message)
	})
}

// compare compares addresses with what x/net reads, if it can read the packet.
func compare(t *testing.T, packet []byte, message Message) {
	t.Helper()
	var other dnsmessage.Message
	if other.Unpack(packet) != nil {
		return
	}
	var want, got []netip.Addr
	for _, resource := range slices.Concat(other.Answers, other.Authorities, other.Additionals) {
		if resource.Header.Class&^topBit != classIN {
			continue
		}
		switch body := resource.Body.(type) {
		case *dnsmessage.AResource:
			want = append(want, netip.AddrFrom4(body.A))
		case *dnsmessage.AAAAResource:
			want = append(want, netip.AddrFrom16(body.AAAA))
		}
	}
	for _, record := range message.Records {
		if record.Address.IsValid() {
			got = append(got, record.Address)
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("addresses %v, but x/net reads %v", got, want)
	}
}
