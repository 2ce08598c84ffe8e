package wsdiscovery

import (
	"fmt"
	"strings"
	"testing"
)

// probe returns a Probe with the content of its element.
func probe(attributes, content string) string {
	return fmt.Sprintf(`<?xml version="1.0"?><e:Envelope xmlns:e="%s" xmlns:w="%s" xmlns:d="%s"%s><e:Header><w:MessageID>uuid:1</w:MessageID>`+
		`<w:To>urn:schemas-xmlsoap-org:ws:2005:04:discovery</w:To></e:Header><e:Body><d:Probe>%s</d:Probe></e:Body></e:Envelope>`,
		soapNamespace, addressingNamespace, discoveryNamespace, attributes, content)
}

var hall = Target{
	UUID:   "5f5a69c2-e0ae-504f-829b-00fcdab169cc",
	Types:  []Type{VideoTransmitter, Device},
	Scopes: []string{"onvif://www.onvif.org/name/hall", "onvif://www.onvif.org/location/ground/1"},
	XAddr:  "http://192.0.2.1:8881/onvif/device_service",
}

func TestMatches(t *testing.T) {
	const network, device = ` xmlns:dn="http://www.onvif.org/ver10/network/wsdl"`, ` xmlns:tds="http://www.onvif.org/ver10/device/wsdl"`
	for name, test := range map[string]struct {
		packet string
		want   bool
	}{
		"everything":                  {probe("", ""), true},
		"a video transmitter":         {probe(network, "<d:Types>dn:NetworkVideoTransmitter</d:Types>"), true},
		"a device":                    {probe(device, "<d:Types>tds:Device</d:Types>"), true},
		"both types":                  {probe(network+device, "<d:Types>dn:NetworkVideoTransmitter tds:Device</d:Types>"), true},
		"a prefix bound at the types": {probe("", `<d:Types xmlns:x="http://www.onvif.org/ver10/device/wsdl">x:Device</d:Types>`), true},
		"a default namespace":         {probe("", `<d:Types xmlns="http://www.onvif.org/ver10/device/wsdl">Device</d:Types>`), true},
		"one type of two":             {probe(network, "<d:Types>dn:NetworkVideoTransmitter dn:Printer</d:Types>"), false},
		"an unbound prefix":           {probe("", "<d:Types>netwsdl:NetworkVideoTransmitter</d:Types>"), false},
		"another namespace":           {probe(` xmlns:dn="urn:x"`, "<d:Types>dn:NetworkVideoTransmitter</d:Types>"), false},
		"a scope":                     {probe("", "<d:Scopes>onvif://www.onvif.org/name/hall</d:Scopes>"), true},
		"the segments before":         {probe("", "<d:Scopes>ONVIF://www.onvif.org/location/</d:Scopes>"), true},
		"half a segment":              {probe("", "<d:Scopes>onvif://www.onvif.org/name/ha</d:Scopes>"), false},
		"one scope of two":            {probe("", "<d:Scopes>onvif://www.onvif.org/name/hall onvif://www.onvif.org/name/x</d:Scopes>"), false},
		"the same text":               {probe("", `<d:Scopes MatchBy="`+matchByString+`">onvif://www.onvif.org/name/hall</d:Scopes>`), true},
		"a part of the text":          {probe("", `<d:Scopes MatchBy="`+matchByString+`">onvif://www.onvif.org/name</d:Scopes>`), false},
		"an unknown rule":             {probe("", `<d:Scopes MatchBy="urn:x">onvif://www.onvif.org/name/hall</d:Scopes>`), false},
		"a Resolve":                   {resolve("urn:uuid:5F5A69C2-e0ae-504f-829b-00fcdab169cc"), true},
		"a Resolve of another device": {resolve("urn:uuid:00000000-e0ae-504f-829b-00fcdab169cc"), false},
	} {
		m, err := Parse([]byte(test.packet))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got := hall.Matches(m); got != test.want {
			t.Errorf("%s: matches is %v, of %+v", name, got, m)
		}
	}
}

func resolve(address string) string {
	text := probe("", "")
	return strings.Replace(text, "<d:Probe></d:Probe>",
		"<d:Resolve><w:EndpointReference><w:Address>"+address+"</w:Address></w:EndpointReference></d:Resolve>", 1)
}
