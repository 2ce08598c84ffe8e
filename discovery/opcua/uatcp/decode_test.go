package uatcp

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/gopcua/opcua/ua"
)

// encode returns the encoding of another implementation.
func encode(t testing.TB, value any) []byte {
	t.Helper()
	data, err := ua.Encode(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func header() *ua.ResponseHeader {
	return &ua.ResponseHeader{
		ServiceDiagnostics: &ua.DiagnosticInfo{
			EncodingMask: 0x51, SymbolicID: 7, AdditionalInfo: "more",
			InnerDiagnosticInfo: &ua.DiagnosticInfo{EncodingMask: 0x21, SymbolicID: 8, InnerStatusCode: ua.StatusBad},
		},
		StringTable:      []string{"a", ""},
		AdditionalHeader: ua.NewExtensionObject(nil),
	}
}

func oven() *ua.ApplicationDescription {
	return &ua.ApplicationDescription{
		ApplicationURI: "urn:oven", ProductURI: "urn:product",
		ApplicationName:  &ua.LocalizedText{EncodingMask: ua.LocalizedTextText | ua.LocalizedTextLocale, Locale: "en", Text: "Oven"},
		ApplicationType:  ua.ApplicationTypeClientAndServer,
		GatewayServerURI: "urn:gateway", DiscoveryProfileURI: "urn:profile",
		DiscoveryURLs: []string{"https://oven", "opc.tcp://oven:4840"},
	}
}

// answers are answers in the encoding of another implementation, after their node IDs.
func answers(t testing.TB) map[uint32][]byte {
	return map[uint32][]byte{
		findServersResponseID: encode(t, &ua.FindServersResponse{
			ResponseHeader: header(), Servers: []*ua.ApplicationDescription{oven(), {ApplicationName: &ua.LocalizedText{}}},
		}),
		findOnNetworkResponseID: encode(t, &ua.FindServersOnNetworkResponse{ResponseHeader: header(), Servers: []*ua.ServerOnNetwork{
			{RecordID: 1, ServerName: "Oven", DiscoveryURL: "opc.tcp://oven:4840", ServerCapabilities: []string{"DA", "LDS"}},
		}}),
		getEndpointsResponseID: encode(t, &ua.GetEndpointsResponse{ResponseHeader: header(), Endpoints: []*ua.EndpointDescription{{
			EndpointURL: "opc.tcp://oven:4840", Server: oven(), ServerCertificate: make([]byte, 9000),
			SecurityMode: ua.MessageSecurityModeSignAndEncrypt, SecurityPolicyURI: ua.SecurityPolicyURIBasic256Sha256,
			UserIdentityTokens:  []*ua.UserTokenPolicy{{PolicyID: "x", TokenType: ua.UserTokenTypeUserName, SecurityPolicyURI: "y"}},
			TransportProfileURI: "urn:transport", SecurityLevel: 3,
		}}}),
	}
}

// decoding returns a decoder of an answer, and a function that returns what it has not read.
func decoding(data []byte) (d *decoder, rest func() int) {
	from := &chunk{bufio.NewReader(bytes.NewReader(data)), len(data)}
	return &decoder{from: from}, func() int { return from.left }
}

// decodeList decodes an answer with a list.
func decodeList[T any](data []byte, skip, maximum uint32, read func(*decoder) T) (found []T, rest int, err error) {
	d, left := decoding(data)
	if status := d.responseHeader(); status != 0 && d.err == nil {
		return nil, left(), status
	}
	d.skip(skip)
	elements(d, maximum, read, func(element T) { found = append(found, element) })
	return found, left(), d.err
}

func TestDecode(t *testing.T) {
	all := answers(t)

	servers, rest, err := decodeList(all[findServersResponseID], 0, maxApplications, (*decoder).application)
	if err != nil || rest != 0 || len(servers) != 2 {
		t.Fatalf("%d servers, %d bytes left: %v", len(servers), rest, err)
	}
	first := servers[0]
	if first.URI != "urn:oven" || first.ProductURI != "urn:product" || first.Name != "Oven" || first.Type != "ClientAndServer" ||
		strings.Join(first.DiscoveryURLs, " ") != "https://oven opc.tcp://oven:4840" {
		t.Errorf("the first server is %+v", first)
	}

	cut := all[findServersResponseID][:len(all[findServersResponseID])-1]
	if servers, _, err = decodeList(cut, 0, maxApplications, (*decoder).application); err == nil || len(servers) != 1 {
		t.Errorf("an answer without its last byte: %d servers, %v; want those that are complete, and an error", len(servers), err)
	}

	endpoints, rest, err := decodeList(all[getEndpointsResponseID], 0, maxEndpoints, (*decoder).endpoint)
	if err != nil || rest != 0 || len(endpoints) != 1 {
		t.Fatalf("%d endpoints, %d bytes left: %v", len(endpoints), rest, err)
	}
	if e := endpoints[0]; e.URL != "opc.tcp://oven:4840" || e.Mode != "SignAndEncrypt" ||
		e.Policy != ua.SecurityPolicyURIBasic256Sha256 || e.Server.Name != "Oven" {
		t.Errorf("the endpoint is %+v", e)
	}

	records, rest, err := decodeList(all[findOnNetworkResponseID], 8, maxApplications, (*decoder).record)
	if err != nil || rest != 0 || len(records) != 1 || records[0].Name != "Oven" || records[0].Type != "" ||
		!slices.Equal(records[0].DiscoveryURLs, []string{"opc.tcp://oven:4840"}) {
		t.Errorf("the records are %+v, %d bytes left: %v", records, rest, err)
	}
}

// TestLongStrings checks that what follows a string that is too long to be kept is read.
func TestLongStrings(t *testing.T) {
	for length, want := range map[int]int{maxStringBytes: maxStringBytes, maxStringBytes + 1: 0, 100_000: 0} {
		oven := oven()
		oven.ApplicationURI = strings.Repeat("x", length)
		body := encode(t, &ua.FindServersResponse{ResponseHeader: header(), Servers: []*ua.ApplicationDescription{oven}})
		servers, _, err := decodeList(body, 0, maxApplications, (*decoder).application)
		if err != nil || len(servers) != 1 || len(servers[0].URI) != want || servers[0].Name != "Oven" {
			t.Errorf("%d bytes: %+v, %v", length, servers, err)
		}
	}
}

func TestNodeIDs(t *testing.T) {
	for name, tc := range map[string]struct {
		id   *ua.ExpandedNodeID
		want uint32
	}{
		"two bytes":         {ua.NewTwoByteExpandedNodeID(7), 7},
		"four bytes":        {ua.NewFourByteExpandedNodeID(0, 425), 425},
		"another namespace": {ua.NewFourByteExpandedNodeID(2, 425), 0},
		"numeric":           {ua.NewNumericExpandedNodeID(0, 70000), 70000},
		"a string":          {ua.NewStringExpandedNodeID(1, "name"), 0},
		"a GUID":            {ua.NewGUIDExpandedNodeID(1, "9e1c2b6c-6c2f-4f0f-9a53-6f5d3f6a1f11"), 0},
		"opaque":            {ua.NewByteStringExpandedNodeID(1, []byte{1, 2}), 0},
		"with a URI":        {ua.NewExpandedNodeID(ua.NewTwoByteNodeID(7), "urn:x", 3), 7},
	} {
		t.Run(name, func(t *testing.T) {
			d, rest := decoding(encode(t, tc.id))
			if got := d.nodeID(); got != tc.want || d.err != nil || rest() != 0 {
				t.Errorf("got %d, %v, with %d bytes left, want %d", got, d.err, rest(), tc.want)
			}
		})
	}
}

// TestAnnouncedSizes has short answers that announce much; FuzzDecode checks what they cost.
func TestAnnouncedSizes(t *testing.T) {
	const okHeader = "0000000000000000" + "01000000" + "00000000" + "00" + "ffffffff" + "000000"
	for name, tc := range map[string]struct {
		body string
		want error
	}{
		"two billion servers":   {okHeader + "ffffff7f", ErrTooLarge},
		"a negative length":     {okHeader + "feffffff", ErrMalformed},
		"a long table":          {"0000000000000000" + "01000000" + "00000000" + "00" + "ffffff7f", ErrMalformed},
		"nested diagnostics":    {"0000000000000000" + "01000000" + "00000000" + strings.Repeat("40", 100), ErrMalformed},
		"an unknown node ID":    {"0000000000000000" + "01000000" + "00000000" + "00" + "ffffffff" + "3f", ErrMalformed},
		"many servers":          {okHeader + "89130000" + strings.Repeat("00", 5001*25), ErrTooLarge},
		"a name of 2 GiB":       {okHeader + "01000000" + "ffffff7f" + "61", ErrMalformed},
		"it ends in the header": {"00000000", ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := hex.DecodeString(tc.body)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = decodeAll(findServersResponseID, data); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

// decodeAll decodes an answer, and returns the number of its elements.
func decodeAll(id uint16, body []byte) (count int, err error) {
	switch uint32(id) {
	case findOnNetworkResponseID:
		found, _, err := decodeList(body, 8, maxApplications, (*decoder).record)
		return len(found), err
	case getEndpointsResponseID:
		found, _, err := decodeList(body, 0, maxEndpoints, (*decoder).endpoint)
		return len(found), err
	default:
		found, _, err := decodeList(body, 0, maxApplications, (*decoder).application)
		return len(found), err
	}
}

// FuzzDecode decodes any answer: it must not panic, not return more than its bounds, and
// not allocate more than a multiple of the answer's size.
func FuzzDecode(f *testing.F) {
	for id, body := range answers(f) {
		f.Add(uint16(id), body)
		// A message that announces as many elements as are permitted, and has none.
		f.Add(uint16(id), slices.Concat(make([]byte, 17), u32(nullLength), make([]byte, 3+8), u32(256)))
	}
	f.Add(uint16(findServersResponseID), slices.Concat(make([]byte, 17), u32(nullLength), make([]byte, 3), u32(maxApplications)))
	f.Fuzz(func(t *testing.T, id uint16, body []byte) {
		before := allocated()
		count, err := decodeAll(id, body)
		if used, limit := allocated()-before, uint64(64<<10+64*len(body)); used > limit {
			t.Errorf("%d bytes made it allocate %d bytes, more than %d", len(body), used, limit)
		}
		if count > maxApplications || count*16 > len(body) { // the shortest record has 16 bytes
			t.Errorf("%d elements of %d bytes: %v", count, len(body), err)
		}
	})
}
