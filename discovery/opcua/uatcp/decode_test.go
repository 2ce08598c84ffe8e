package uatcp

import (
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
		ServiceDiagnostics: &ua.DiagnosticInfo{EncodingMask: 0x11, SymbolicID: 7, AdditionalInfo: "more"},
		StringTable:        []string{"a", ""},
		AdditionalHeader:   ua.NewExtensionObject(nil),
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

func TestDecode(t *testing.T) {
	all := answers(t)

	d := &decoder{data: all[findServersResponseID]}
	if status := d.responseHeader(); status != 0 {
		t.Errorf("status %v", status)
	}
	servers := list(d, maxApplications, minApplicationBytes, decodeApplication)
	if d.err != nil || len(d.data) != 0 || len(servers) != 2 {
		t.Fatalf("%d servers, %d bytes left: %v", len(servers), len(d.data), d.err)
	}
	first := servers[0]
	if first.URI != "urn:oven" || first.ProductURI != "urn:product" || first.Name != "Oven" || first.Type != TypeClientAndServer ||
		strings.Join(first.DiscoveryURLs, " ") != "https://oven opc.tcp://oven:4840" {
		t.Errorf("the first server is %+v", first)
	}

	d = &decoder{data: all[getEndpointsResponseID]}
	d.responseHeader()
	endpoints := list(d, maxEndpoints, minEndpointBytes, decodeEndpoint)
	if d.err != nil || len(d.data) != 0 || len(endpoints) != 1 {
		t.Fatalf("%d endpoints, %d bytes left: %v", len(endpoints), len(d.data), d.err)
	}
	if e := endpoints[0]; e.Mode != "SignAndEncrypt" || e.Policy != ua.SecurityPolicyURIBasic256Sha256 ||
		e.Server.Name != "Oven" || e.Transport != "urn:transport" {
		t.Errorf("the endpoint is %+v", e)
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
			d := &decoder{data: encode(t, tc.id)}
			if got := d.nodeID(); got != tc.want || d.err != nil || len(d.data) != 0 {
				t.Errorf("got %d, %v, with %d bytes left, want %d", got, d.err, len(d.data), tc.want)
			}
		})
	}
}

// TestAnnouncedSizes checks that a short answer that announces much costs no memory.
func TestAnnouncedSizes(t *testing.T) {
	const okHeader = "0000000000000000" + "01000000" + "00000000" + "00" + "ffffffff" + "000000"
	for name, tc := range map[string]struct {
		body string
		want error
	}{
		"two billion servers":   {okHeader + "ffffff7f", ErrMalformed},
		"a negative length":     {okHeader + "feffffff", ErrMalformed},
		"a long table":          {"0000000000000000" + "01000000" + "00000000" + "00" + "ffffff7f", ErrMalformed},
		"nested diagnostics":    {"0000000000000000" + "01000000" + "00000000" + strings.Repeat("40", 100), ErrTooLarge},
		"an unknown node ID":    {"0000000000000000" + "01000000" + "00000000" + "00" + "ffffffff" + "3f", ErrMalformed},
		"many servers":          {okHeader + "89130000" + strings.Repeat("00", 5001*minApplicationBytes), ErrTooLarge},
		"a long name":           {okHeader + "01000000" + "01200000" + strings.Repeat("61", 0x2001) + strings.Repeat("00", 30), ErrTooLarge},
		"it ends in the header": {"00000000", ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := hex.DecodeString(tc.body)
			if err != nil {
				t.Fatal(err)
			}
			before := allocated()
			d := &decoder{data: data}
			d.responseHeader()
			list(d, maxApplications, minApplicationBytes, decodeApplication)
			used := allocated() - before
			if !errors.Is(d.err, tc.want) {
				t.Errorf("got %v, want %v", d.err, tc.want)
			}
			if used > 1<<20 {
				t.Errorf("allocated %d bytes", used)
			}
		})
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
		d := &decoder{data: body}
		d.responseHeader()
		count := 0
		switch uint32(id) {
		case findOnNetworkResponseID:
			d.skip(8)
			count = len(list(d, maxApplications, minRecordBytes, decodeRecord))
		case getEndpointsResponseID:
			count = len(list(d, maxEndpoints, minEndpointBytes, decodeEndpoint))
		default:
			count = len(list(d, maxApplications, minApplicationBytes, decodeApplication))
		}
		if used, limit := allocated()-before, uint64(64<<10+64*len(body)); used > limit {
			t.Errorf("%d bytes made it allocate %d bytes, more than %d", len(body), used, limit)
		}
		if d.err != nil && count > 0 || count > maxApplications || count*minRecordBytes > len(body) {
			t.Errorf("%d elements of %d bytes: %v", count, len(body), d.err)
		}
	})
}
