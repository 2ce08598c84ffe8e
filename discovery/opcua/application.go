package opcua

import (
	"cmp"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"akri.sh/akri/discovery"
	shared "akri.sh/akri/discovery/details"
	"akri.sh/akri/discovery/opcua/details"
	"akri.sh/akri/discovery/opcua/uatcp"
	"akri.sh/akri/internal/text"
)

// maxPoliciesBytes bounds the security policies in a property.
const maxPoliciesBytes = 1024

// policyName matches the names of security policies.
var policyName = regexp.MustCompile("^[A-Za-z0-9_-]+$")

const maxPolicyNameBytes = 64

// application is an application at a URL, as a target has reported it.
type application struct {
	// id identifies it, and url is where it can be reached. Both are chosen from urls.
	id, url string
	urls    []candidate
	// isAsked says that it has answered itself, at the URL that is its id, which is one of the
	// Configuration or of a finder.
	isAsked bool
	// name, uri and product are what a server reports, and therefore any text.
	name, uri, product string
	// kind is the type of the application, or empty if only a record of a network describes
	// it.
	kind string
	// addresses are those of the URL's host, with its port.
	addresses []netip.AddrPort
	// endpoints are the security policies and modes; empty if they are unknown.
	endpoints string
}

// describedBy returns an application as a server reports it, without its URL.
func describedBy(reported uatcp.Application) application {
	return application{
		name: clean(reported.Name), uri: clean(reported.URI), product: clean(reported.ProductURI),
		kind: reported.Type, urls: candidates(reported.DiscoveryURLs),
	}
}

// clean returns text that is valid in an environment variable and in a log.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, " "))
	return strings.TrimSpace(s)
}

// admits reports whether an application passes the filters. A record of a network has no
// type and passes as a server.
func admits(d *details.Details, a application) bool {
	return (a.kind == "" || slices.Contains(d.ApplicationTypes, a.kind)) &&
		d.ApplicationNames.Admits(shared.Glob, a.name) &&
		d.ApplicationURIs.Admits(shared.Glob, a.uri) &&
		d.ProductURIs.Admits(shared.Glob, a.product)
}

// device returns the device of an application.
func (a application) device(id string) discovery.Device {
	device := discovery.Device{ID: a.id, Properties: map[string]string{
		PropertyURL: a.url, discovery.DisplayName: strings.TrimPrefix(cmp.Or(a.name, a.uri)+" at "+a.url, " at "),
	}}
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

// appendPolicy appends the security policy and mode of an endpoint, unless it is one for
// https or WebSockets.
func appendPolicy(policies []string, e uatcp.Endpoint) []string {
	policy := e.Policy[strings.LastIndexByte(e.Policy, '#')+1:]
	if !strings.HasPrefix(e.URL, details.Scheme) || len(policy) > maxPolicyNameBytes || !policyName.MatchString(policy) {
		return policies
	}
	return append(policies, policy+"/"+e.Mode)
}

// summarize returns security policies and modes in alphabetical order, such as
// "Basic256Sha256/SignAndEncrypt,None/None".
func summarize(policies []string) string {
	slices.Sort(policies)
	return text.Truncate(strings.Join(slices.Compact(policies), ","), maxPoliciesBytes)
}
