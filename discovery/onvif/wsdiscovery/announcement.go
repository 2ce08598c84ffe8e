package wsdiscovery

import (
	"cmp"
	"encoding/xml"
	"errors"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"akri.sh/akri/discovery/onvif/envelope"
)

const (
	// maxAnnouncements bounds the matches in one message. Devices send one; discovery
	// proxies, which ONVIF does not prescribe, send several.
	maxAnnouncements = 64
	// maxXAddrs bounds the addresses of one device: one for each of its own addresses
	// and protocols.
	maxXAddrs = 8
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
	// Types are the types of the device with their prefixes. The prefix for the namespace of
	// Device is always tds, as in the standard; others are as in the message.
	Types []string
	// Scopes describe the device, such as onvif://www.onvif.org/location/gate.
	Scopes []string
	// XAddrs are the URLs of its device service. Hello may lack them.
	XAddrs []string
}

const devicePrefix = "tds"

// message is a message, as far as it is read.
type message struct {
	XMLName xml.Name
	Body    struct {
		Matches []endpoint `xml:"ProbeMatches>ProbeMatch"`
		Match   []endpoint `xml:"ProbeMatch"`
		Hello   []endpoint
		Bye     []endpoint
		Fault   *struct{}
	}
}

// endpoint is an element that announces a device.
type endpoint struct {
	Address               string `xml:"EndpointReference>Address"`
	Types, Scopes, XAddrs string
}

// deviceNamespace matches the declaration of the namespace of Device. Package xml does not
// resolve the prefixes of the names in Types.
var deviceNamespace = regexp.MustCompile(`\bxmlns(?::([^\s=]+))?\s*=\s*["']` + regexp.QuoteMeta(Device.namespace) + `["']`)

// Parse returns the announcements in a message, none if it is of another kind.
func Parse(data []byte) ([]Announcement, error) {
	var m message
	if err := envelope.Decode(data, &m); m.XMLName.Local != "Envelope" { // else what is whole counts
		return nil, cmp.Or(err, errors.New("not a SOAP envelope"))
	}
	if m.Body.Fault != nil {
		return nil, errors.New("a SOAP fault instead of an answer to the probe")
	}
	var prefixes []string
	for _, declaration := range deviceNamespace.FindAllSubmatch(data, -1) {
		prefixes = append(prefixes, string(declaration[1]))
	}
	var all []Announcement
	add := func(kind Kind, endpoints []endpoint) {
		for _, e := range endpoints {
			if a := e.announcement(kind, prefixes); a.UUID != "" && len(all) < maxAnnouncements {
				all = append(all, a)
			}
		}
	}
	add(Match, append(m.Body.Matches, m.Body.Match...))
	add(Hello, m.Body.Hello)
	add(Bye, m.Body.Bye)
	return all, nil
}

// announcement returns what an element says. The prefixes are those that the message binds to
// the namespace of Device.
func (e endpoint) announcement(kind Kind, prefixes []string) Announcement {
	a := Announcement{Kind: kind, UUID: strings.Clone(NormalUUID(e.Address)), Scopes: strings.Fields(e.Scopes)}
	if len(a.UUID) > maxUUIDBytes || strings.ContainsFunc(a.UUID, unicode.IsControl) {
		return Announcement{}
	}
	for name := range strings.FieldsSeq(e.Types) {
		prefix, local, found := strings.Cut(name, ":")
		if !found {
			prefix, local = "", name
		}
		if slices.Contains(prefixes, prefix) {
			prefix = devicePrefix
		}
		a.Types = append(a.Types, prefix+":"+local)
	}
	for xaddr := range strings.FieldsSeq(e.XAddrs) {
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
	return slices.ContainsFunc(a.Types, func(name string) bool { // other standards use the word Device as well
		return name == devicePrefix+":"+Device.local || strings.HasSuffix(name, ":"+NetworkVideoTransmitter.local)
	})
}
