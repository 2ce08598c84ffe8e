package wsdiscovery

import (
	"encoding/xml"
	"slices"
	"strings"
	"testing"
	"unicode"
)

const (
	april2005   = "http://schemas.xmlsoap.org/ws/2005/04/discovery"
	january2009 = "http://docs.oasis-open.org/ws-dd/ns/discovery/2009/01"
)

// soapMessage returns a message with a body, in a dialect.
func soapMessage(dialect, body string) string {
	return `<?xml version="1.0" encoding="UTF-8"?><e:Envelope xmlns:e="http://www.w3.org/2003/05/soap-envelope"
		xmlns:a="http://schemas.xmlsoap.org/ws/2004/08/addressing" xmlns:d="` + dialect + `"
		xmlns:dn="http://www.onvif.org/ver10/network/wsdl" xmlns:t="http://www.onvif.org/ver10/device/wsdl"
		xmlns:wsdp="http://schemas.xmlsoap.org/ws/2006/02/devprof"><e:Header/><e:Body>` + body + `</e:Body></e:Envelope>`
}

const fields = `<a:EndpointReference><a:Address>urn:uuid:10919DA4-5566-7788-99AA-0012414FB745</a:Address></a:EndpointReference>
	<d:Types>dn:NetworkVideoTransmitter t:Device</d:Types>
	<d:Scopes>onvif://www.onvif.org/name/gate
		onvif://www.onvif.org/location/north</d:Scopes>
	<d:XAddrs>http://10.0.0.5/onvif/device_service https://10.0.0.5/onvif/device_service http://10.0.0.5/onvif/device_service</d:XAddrs>`

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		message string
		kind    Kind
	}{
		"ProbeMatches":          {soapMessage(april2005, "<d:ProbeMatches><d:ProbeMatch>"+fields+"</d:ProbeMatch></d:ProbeMatches>"), Match},
		"ProbeMatches, 2009":    {soapMessage(january2009, "<d:ProbeMatches><d:ProbeMatch>"+fields+"</d:ProbeMatch></d:ProbeMatches>"), Match},
		"ProbeMatch on its own": {soapMessage(april2005, "<d:ProbeMatch>"+fields+"</d:ProbeMatch>"), Match},
		"Hello":                 {soapMessage(april2005, "<d:Hello>"+fields+"</d:Hello>"), Hello},
		"Hello, 2009":           {soapMessage(january2009, "<d:Hello>"+fields+"</d:Hello>"), Hello},
		"Bye":                   {soapMessage(april2005, "<d:Bye>"+fields+"</d:Bye>"), Bye},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := Parse([]byte(tc.message))
			if err != nil || len(all) != 1 {
				t.Fatalf("got %v, %v", all, err)
			}
			a := all[0]
			if a.Kind != tc.kind || a.UUID != "10919da4-5566-7788-99aa-0012414fb745" || !a.IsONVIF() {
				t.Errorf("got %+v", a)
			}
			if want := []string{"onvif://www.onvif.org/name/gate", "onvif://www.onvif.org/location/north"}; !slices.Equal(a.Scopes, want) {
				t.Errorf("the scopes are %q", a.Scopes)
			}
			if want := []string{"http://10.0.0.5/onvif/device_service", "https://10.0.0.5/onvif/device_service"}; !slices.Equal(a.XAddrs, want) {
				t.Errorf("the addresses are %q", a.XAddrs)
			}
		})
	}
}

// TestParseUnusual has messages that are no sound XML.
func TestParseUnusual(t *testing.T) {
	sound := soapMessage(april2005, "<d:ProbeMatches><d:ProbeMatch>"+fields+"</d:ProbeMatch></d:ProbeMatches>")
	for name, text := range map[string]string{
		"an ampersand in a scope": strings.Replace(sound, "name/gate", "name/gate&yard", 1),
		"ISO 8859-1 in a scope":   strings.Replace(sound, "name/gate", "name/gate\xe9", 1),
		"zeros":                   "\x00" + strings.Replace(sound, "name/gate", "name/gate\x00", 1) + "\x00\x00",
		"a byte order mark":       "\ufeff" + sound,
		"no end":                  strings.TrimSuffix(sound, "</e:Body></e:Envelope>"),
		"prefixes of no name":     strings.ReplaceAll(sound, "xmlns:d=", "xmlns:x="),
		"another version of XML":  strings.Replace(sound, `version="1.0"`, `version="1.1"`, 1),
	} {
		all, err := Parse([]byte(text))
		if err != nil || len(all) != 1 || !all[0].IsONVIF() || len(all[0].Scopes) != 2 || len(all[0].XAddrs) != 2 {
			t.Errorf("%s: got %+v, %v", name, all, err)
		}
	}
	if all, err := Parse([]byte(soapMessage(april2005, "<e:Fault><e:Code><e:Value>e:Sender</e:Value></e:Code></e:Fault>"))); err == nil {
		t.Errorf("a fault: got %+v", all)
	}
}

func TestParseOthers(t *testing.T) {
	match := func(inner string) string {
		return soapMessage(april2005, "<d:ProbeMatches><d:ProbeMatch>"+inner+"</d:ProbeMatch></d:ProbeMatches>")
	}
	const endpoint = "<a:EndpointReference><a:Address>urn:uuid:1</a:Address></a:EndpointReference>"
	for name, tc := range map[string]struct {
		message string
		count   int
		is      bool
	}{
		"our own probe":          {string(Probe(Device)), 0, false},
		"no matches":             {soapMessage(april2005, "<d:ProbeMatches/>"), 0, false},
		"without an endpoint":    {match("<d:Types>t:Device</d:Types>"), 0, false},
		"a very long endpoint":   {match(strings.Replace(endpoint, "urn", strings.Repeat("x", 200), 1)), 0, false},
		"a computer":             {match(endpoint + "<d:Types>wsdp:Device pub:Computer</d:Types>"), 1, false},
		"only a device":          {match(endpoint + "<d:Types>t:Device</d:Types>"), 1, true},
		"prefixes without names": {match(endpoint + "<d:Types>tds:Device</d:Types>"), 1, true},
		"another namespace":      {match(endpoint + "<d:Types>x:NetworkVideoTransmitter</d:Types>"), 1, true},
		"no types, but scopes":   {match(endpoint + "<d:Scopes>onvif://www.onvif.org/type/ptz</d:Scopes>"), 1, true},
		"neither":                {match(endpoint), 1, false},
		"many matches": {soapMessage(april2005, "<d:ProbeMatches>"+
			strings.Repeat("<d:ProbeMatch>"+endpoint+"</d:ProbeMatch>", maxAnnouncements+1)+"</d:ProbeMatches>"), maxAnnouncements, false},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := Parse([]byte(tc.message))
			if err != nil || len(all) != tc.count {
				t.Fatalf("got %d announcements, %v; want %d", len(all), err, tc.count)
			}
			if len(all) > 0 && all[0].IsONVIF() != tc.is {
				t.Errorf("%+v is an ONVIF device: %v, want %v", all[0], all[0].IsONVIF(), tc.is)
			}
		})
	}
	for _, text := range []string{"", "<a/>", "NOTIFY * HTTP/1.1"} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// TestProbe checks that the prefix of the type is bound. Akri's is not, so that devices
// that resolve it do not answer.
func TestProbe(t *testing.T) {
	first, second := Probe(NetworkVideoTransmitter), Probe(Device)
	if string(first) == string(Probe(NetworkVideoTransmitter)) {
		t.Error("two probes have the same MessageID")
	}
	for want, message := range map[Type][]byte{
		{"http://www.onvif.org/ver10/network/wsdl", "NetworkVideoTransmitter"}: first,
		{"http://www.onvif.org/ver10/device/wsdl", "Device"}:                   second,
	} {
		var envelope struct {
			Body struct {
				Probe struct {
					XMLName xml.Name
					Types   string
				}
			}
			Attributes []xml.Attr `xml:",any,attr"`
		}
		if err := xml.Unmarshal(message, &envelope); err != nil {
			t.Fatal(err)
		}
		probe := envelope.Body.Probe
		prefix, local, _ := strings.Cut(probe.Types, ":")
		declaration := xml.Attr{Name: xml.Name{Space: "xmlns", Local: prefix}, Value: want.namespace}
		if local != want.local || !slices.Contains(envelope.Attributes, declaration) {
			t.Errorf("the type is %s, and the attributes are %v, want %v", probe.Types, envelope.Attributes, want)
		}
		if probe.XMLName.Space != april2005 {
			t.Errorf("the dialect is %q", probe.XMLName.Space)
		}
	}
}

// TestNamespacesOfTypes has prefixes that are declared in each of the places where they may be.
func TestNamespacesOfTypes(t *testing.T) {
	const onvif, other = ` xmlns:p="http://www.onvif.org/ver10/device/wsdl"`, ` xmlns:o="urn:other"`
	message := func(root, body, matches, match, types, name string) string {
		return "<Envelope" + root + "><Body" + body + "><ProbeMatches" + matches + "><ProbeMatch" + match +
			"><EndpointReference><Address>1</Address></EndpointReference><Types" + types + ">" + name +
			"</Types></ProbeMatch></ProbeMatches></Body></Envelope>"
	}
	for text, want := range map[string]bool{
		message(onvif, "", "", "", "", "p:Device"):                                             true,
		message("", onvif, "", "", "", "p:Device"):                                             true,
		message("", "", onvif, "", "", "p:Device"):                                             true,
		message("", "", "", onvif, "", "p:Device"):                                             true,
		message("", "", "", "", onvif, "p:Device"):                                             true,
		message(other, other, other, other, onvif, "p:Device"):                                 true,
		message(onvif, other, "", strings.Replace(onvif, "p", "q", 1), "", "q:Device"):         true,
		message(onvif, "", "", "", other, "o:Device"):                                          false,
		message("", "", "", "", "", "p:Device"):                                                false,
		message(onvif, "", "", "", "", "Device"):                                               false,
		message("", "", "", "", ` xmlns="http://www.onvif.org/ver10/device/wsdl"`, " Device "): true,
	} {
		all, err := Parse([]byte(text))
		if err != nil || len(all) != 1 || all[0].IsONVIF() != want {
			t.Errorf("%s: got %+v, %v, want one that is an ONVIF device: %v", text, all, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(soapMessage(april2005, "<d:ProbeMatches><d:ProbeMatch>"+fields+"</d:ProbeMatch></d:ProbeMatches>")))
	f.Add([]byte(soapMessage(january2009, "<d:Bye>"+fields+"</d:Bye>")))
	f.Add(Probe(Device))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := Parse(data)
		if err != nil {
			return
		}
		for _, a := range all {
			bounded := len(a.UUID) <= maxUUIDBytes && len(a.XAddrs) <= maxXAddrs
			if !bounded || a.UUID == "" || strings.ContainsFunc(a.UUID, unicode.IsControl) || len(all) > maxAnnouncements {
				t.Fatalf("not bounded: %+v", a)
			}
			a.IsONVIF()
		}
	})
}
