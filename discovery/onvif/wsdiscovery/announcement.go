package wsdiscovery

import (
	"encoding/xml"
	"errors"
	"slices"
	"strings"

	"akri.sh/akri/discovery/onvif/xmltree"
)

const (
	// maxAnnouncements bounds the matches in one message. Devices send one; discovery
	// proxies, which ONVIF does not prescribe, send several.
	maxAnnouncements = 64
	// maxXAddrs bounds the addresses of one device: one for each of its own addresses
	// and protocols.
	maxXAddrs = 8
	// maxScopes bounds the scopes of one device.
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

// Parse returns the announcements in a message, none if it is of another kind.
func Parse(data []byte) ([]Announcement, error) {
	envelope, err := xmltree.Parse(data)
	if err != nil {
		return nil, err
	}
	if envelope.Name.Local != "Envelope" {
		return nil, errors.New("not a SOAP envelope")
	}
	body := envelope.Find("Body")
	var all []Announcement
	for _, group := range []struct {
		kind     Kind
		elements []*xmltree.Element
	}{
		{Match, append(body.All("ProbeMatches", "ProbeMatch"), body.All("ProbeMatch")...)},
		{Hello, body.All("Hello")},
		{Bye, body.All("Bye")},
	} {
		for _, element := range group.elements {
			if announcement := announcementOf(group.kind, element); announcement.UUID != "" && len(all) < maxAnnouncements {
				all = append(all, announcement)
			}
		}
	}
	return all, nil
}

func announcementOf(kind Kind, element *xmltree.Element) Announcement {
	a := Announcement{Kind: kind, UUID: strings.Clone(NormalUUID(element.Value("EndpointReference", "Address")))}
	if len(a.UUID) > maxUUIDBytes || strings.ContainsFunc(a.UUID, isControl) {
		return Announcement{}
	}
	a.Types = element.Find("Types").Names()
	a.Scopes = strings.Fields(element.Value("Scopes"))
	a.Scopes = a.Scopes[:min(len(a.Scopes), maxScopes)]
	for xaddr := range strings.FieldsSeq(element.Value("XAddrs")) {
		if len(xaddr) <= maxXAddrBytes && !slices.Contains(a.XAddrs, xaddr) && len(a.XAddrs) < maxXAddrs {
			a.XAddrs = append(a.XAddrs, strings.Clone(xaddr)) // which is kept without the message
		}
	}
	return a
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
