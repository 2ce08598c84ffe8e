package wsdiscovery

import (
	"encoding/xml"
	"errors"
	"slices"
	"strings"

	"akri.sh/akri/discovery/onvif/envelope"
)

const (
	// maxAnnouncements bounds the matches in one message. Devices send one; discovery
	// proxies, which ONVIF does not prescribe, send several.
	maxAnnouncements = 64
	// maxXAddrs bounds the addresses of one device: one for each of its own addresses
	// and protocols.
	maxXAddrs = 8
	// maxTypes and maxScopes bound the types and the scopes of one device.
	maxTypes  = 16
	maxScopes = 256
	// maxUUIDBytes bounds the address of an endpoint, usually a UUID of 36 bytes.
	maxUUIDBytes = 128
	// maxXAddrBytes bounds the URL of a device.
	maxXAddrBytes = 512
)

// Kind is the kind of an Announcement.
type Kind int

// The kinds of announcements.
const (
	// Match answers a Probe.
	Match Kind = iota + 1
	// Hello says that a device has joined the network.
	Hello
	// Bye says that a device leaves it. Anybody can send one.
	Bye
)

// Announcement is what a device says about itself.
type Announcement struct {
	Kind Kind
	// UUID identifies the device; in lower case, without "urn:" and "uuid:".
	UUID string
	// Types are the types of the device. A prefix that is not bound is the namespace.
	Types []xml.Name
	// Scopes describe the device, such as onvif://www.onvif.org/location/gate.
	Scopes []string
	// XAddrs are the URLs of its device service. Hello may lack them.
	XAddrs []string
}

// message is a message, as far as it is read.
type message struct {
	namespaces
	XMLName xml.Name
	Body    struct {
		namespaces
		Matches []struct {
			namespaces
			Match []endpoint `xml:"ProbeMatch"`
		} `xml:"ProbeMatches"`
		Match []endpoint `xml:"ProbeMatch"`
		Hello []endpoint
		Bye   []endpoint
	}
}

// endpoint is an element that announces a device.
type endpoint struct {
	namespaces
	Address string `xml:"EndpointReference>Address"`
	Types   struct {
		namespaces
		Names string `xml:",chardata"`
	}
	Scopes, XAddrs string
}

// namespaces has the attributes of an element, because some of them declare namespaces:
// package xml does not resolve the prefixes of the names in Types.
type namespaces struct {
	Attributes []xml.Attr `xml:",any,attr"`
}

// Parse returns the announcements in a message, none if it is of another kind.
func Parse(data []byte) ([]Announcement, error) {
	var m message
	if err := envelope.Decode(data, &m); err != nil {
		return nil, err
	}
	if m.XMLName.Local != "Envelope" {
		return nil, errors.New("not a SOAP envelope")
	}
	var all []Announcement
	add := func(kind Kind, endpoints []endpoint, parents ...namespaces) {
		for _, e := range endpoints {
			if a := e.announcement(kind, parents); a.UUID != "" && len(all) < maxAnnouncements {
				all = append(all, a)
			}
		}
	}
	body, root := m.Body.namespaces, m.namespaces
	for _, matches := range m.Body.Matches {
		add(Match, matches.Match, matches.namespaces, body, root)
	}
	add(Match, m.Body.Match, body, root)
	add(Hello, m.Body.Hello, body, root)
	add(Bye, m.Body.Bye, body, root)
	return all, nil
}

// announcement returns what an element with some parents says, the innermost first.
func (e endpoint) announcement(kind Kind, parents []namespaces) Announcement {
	a := Announcement{Kind: kind, UUID: strings.Clone(NormalUUID(e.Address))}
	if len(a.UUID) > maxUUIDBytes || strings.ContainsFunc(a.UUID, isControl) {
		return Announcement{}
	}
	all := append([]namespaces{e.Types.namespaces, e.namespaces}, parents...)
	for name := range strings.FieldsSeq(e.Types.Names) {
		if a.Types = append(a.Types, resolve(name, all)); len(a.Types) == maxTypes {
			break
		}
	}
	a.Scopes = strings.Fields(e.Scopes)
	a.Scopes = a.Scopes[:min(len(a.Scopes), maxScopes)]
	for xaddr := range strings.FieldsSeq(e.XAddrs) {
		if len(xaddr) <= maxXAddrBytes && !slices.Contains(a.XAddrs, xaddr) && len(a.XAddrs) < maxXAddrs {
			a.XAddrs = append(a.XAddrs, strings.Clone(xaddr)) // which is kept without the message
		}
	}
	return a
}

// resolve returns a name with the namespace that its prefix is bound to, by the innermost
// element that declares it. If it is not bound, the prefix is the namespace.
func resolve(name string, innermostFirst []namespaces) xml.Name {
	prefix, local, found := strings.Cut(name, ":")
	declaration := xml.Name{Space: "xmlns", Local: prefix}
	if !found {
		prefix, local, declaration = "", name, xml.Name{Local: "xmlns"}
	}
	for _, element := range innermostFirst {
		for _, attribute := range element.Attributes {
			if attribute.Name == declaration {
				return xml.Name{Space: attribute.Value, Local: local}
			}
		}
	}
	return xml.Name{Space: prefix, Local: local}
}

// NormalUUID returns the address of an endpoint in lower case, without "urn:" and
// "uuid:".
func NormalUUID(address string) string {
	address = strings.ToLower(strings.TrimSpace(address))
	address = strings.TrimPrefix(address, "urn:")
	return strings.TrimPrefix(address, "uuid:")
}

// IsONVIF reports whether a device is an ONVIF device. Printers and computers use
// WS-Discovery too.
func (a Announcement) IsONVIF() bool {
	if len(a.Types) == 0 {
		return slices.ContainsFunc(a.Scopes, func(scope string) bool {
			return strings.HasPrefix(strings.ToLower(scope), "onvif://www.onvif.org/")
		})
	}
	return slices.ContainsFunc(a.Types, func(name xml.Name) bool {
		switch name.Local {
		case NetworkVideoTransmitter.local:
			return true
		case Device.local: // other standards use this word as well
			return name.Space == Device.namespace || name.Space == "tds"
		}
		return false
	})
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }
