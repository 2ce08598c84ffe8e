package opcua

import (
	"net/netip"
	"slices"
	"strings"
	"unicode"

	"akri.sh/akri/discovery"
	shared "akri.sh/akri/discovery/details"
	"akri.sh/akri/discovery/opcua/details"
	"akri.sh/akri/discovery/opcua/uatcp"
	"akri.sh/akri/internal/text"
)

// maxTextBytes bounds a name or URI of an application in its properties.
const maxTextBytes = 1024

// application is an application at a URL, as a target has reported it.
type application struct {
	order int // of its target
	url   string
	// name, uri and product are what a server reports, and therefore any text.
	name, uri, product string
	// kind is the type of the application. It is unknown if only a record of a network
	// describes it.
	kind        uatcp.ApplicationType
	isKindKnown bool
	// addresses are those of the URL's host, with its port.
	addresses []netip.AddrPort
	// isUnfinished is set if there was no time to look it up. The next poll goes on.
	isUnfinished bool
	// endpoints are the security policies and modes; empty if they are unknown.
	endpoints string
}

// describe sets what a server reports about an application.
func (a *application) describe(reported uatcp.Application) {
	a.name, a.uri, a.product = clean(reported.Name), clean(reported.URI), clean(reported.ProductURI)
	a.kind, a.isKindKnown = reported.Type, true
}

// clean returns text that is valid in an environment variable and in a log.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, " "))
	return text.Truncate(strings.Clone(strings.TrimSpace(s)), maxTextBytes)
}

// size returns the memory of an application.
func (a application) size() int {
	return applicationBytes + len(a.url) + len(a.name) + len(a.uri) + len(a.product) + len(a.endpoints) + len(a.addresses)*addressBytes
}

// admits reports whether an application passes the filters. A record of a network has no
// type and passes as a server.
func admits(d *details.Details, a application) bool {
	return (!a.isKindKnown || slices.Contains(d.ApplicationTypes, a.kind.String())) &&
		d.ApplicationNames.Admits(shared.Equal, a.name) &&
		d.ApplicationURIs.Admits(shared.Equal, a.uri) &&
		d.ProductURIs.Admits(shared.Equal, a.product)
}

// device returns the device of an application.
func (a application) device(id string) discovery.Device {
	device := discovery.Device{ID: a.url, Properties: map[string]string{PropertyURL: a.url}}
	if id == details.IDByApplicationURI && a.uri != "" {
		device.ID = a.uri
	}
	for property, value := range map[string]string{
		PropertyApplicationName: a.name, PropertyApplicationURI: a.uri, PropertyProductURI: a.product, PropertyEndpoints: a.endpoints,
	} {
		if value != "" {
			device.Properties[property] = value
		}
	}
	return device
}

// summarize returns the security policies and modes of endpoints, such as
// "Basic256Sha256/SignAndEncrypt,None/None", in alphabetical order.
func summarize(endpoints []uatcp.Endpoint) string {
	var all []string
	for _, e := range endpoints {
		if !strings.HasPrefix(e.URL, details.Scheme) {
			continue // https or WebSockets
		}
		policy := e.Policy[strings.LastIndexByte(e.Policy, '#')+1:]
		if isWord(policy) {
			all = append(all, policy+"/"+e.Mode)
		}
	}
	slices.Sort(all)
	return text.Truncate(strings.Join(slices.Compact(all), ","), maxTextBytes)
}

// isWord reports whether a name consists of letters, digits, "_" and "-", as the names of
// security policies do.
func isWord(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-'
	})
}
