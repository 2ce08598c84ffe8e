package details

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"akri.sh/akri/discovery/details"
)

// Bounds on what an author may request.
const (
	maxURLs            = 256
	maxIntervalSeconds = 3600
	maxMisses          = 100
)

// Defaults.
const (
	// DefaultURL is the discovery server of the machine, as in Akri.
	DefaultURL             = "opc.tcp://localhost:4840/"
	defaultIntervalSeconds = 10
	defaultMisses          = 3
)

// The values of Details.ID.
const (
	IDByURL            = "url"
	IDByApplicationURI = "applicationUri"
)

// types are the types of applications, in the specification's words.
var types = []string{"Server", "Client", "ClientAndServer", "DiscoveryServer"}

// Details are the discoveryDetails. The first two keys are Akri's.
type Details struct {
	Method           *Method         `json:"opcuaDiscoveryMethod"`
	ApplicationNames *details.Filter `json:"applicationNames"`
	ApplicationURIs  *details.Filter `json:"applicationUris"`
	ProductURIs      *details.Filter `json:"productUris"`
	ApplicationTypes []string        `json:"applicationTypes"`
	ID               string          `json:"id"`
	IntervalSeconds  int             `json:"intervalSeconds"`
	Misses           int             `json:"misses"`
	AllowHosts       []string        `json:"allowHosts"`

	// Hosts is AllowHosts, parsed.
	Hosts Hosts `json:"-"`
}

// Method says where to look for servers. At least one field is set.
type Method struct {
	Standard *URLs     `json:"standard"`
	Network  *URLs     `json:"network"`
	MDNS     *struct{} `json:"mdns"`
	Scan     *Scan     `json:"scan"`
}

// URLs are discovery URLs of servers or of discovery servers.
type URLs struct {
	DiscoveryURLs []string `json:"discoveryUrls"`
}

// Parse returns the discoveryDetails, with defaults.
func Parse(discoveryDetails string) (*Details, error) {
	d := &Details{
		ID: IDByURL, IntervalSeconds: defaultIntervalSeconds, Misses: defaultMisses,
		ApplicationTypes: []string{"Server", "ClientAndServer"},
	}
	return d, details.Decode(discoveryDetails, d, d.checkMethod, d.checkFilters, d.checkTypes, d.checkTiming, d.checkHosts)
}

func (d *Details) checkMethod() error {
	const path = "opcuaDiscoveryMethod"
	m := d.Method
	if m == nil || *m == (Method{}) {
		return details.Faultf(path, "no method").Hintf("set standard, network, mdns or scan, such as \"%s: {standard: {}}\"", path)
	}
	return cmp.Or(
		m.Standard.check(path+".standard.discoveryUrls"),
		m.Network.check(path+".network.discoveryUrls"),
		m.Scan.check(path+".scan"),
	)
}

func (u *URLs) check(path string) error {
	switch {
	case u == nil:
		return nil
	case u.DiscoveryURLs == nil:
		u.DiscoveryURLs = []string{DefaultURL}
	case len(u.DiscoveryURLs) == 0:
		return details.Faultf(path, "empty").Hintf("leave it out for %s", DefaultURL)
	case len(u.DiscoveryURLs) > maxURLs:
		return details.Faultf(path, "%d URLs, more than %d", len(u.DiscoveryURLs), maxURLs).Hintf("use several Configurations, or scan")
	}
	var mistakes []error
	for i, text := range u.DiscoveryURLs {
		place := fmt.Sprintf("%s[%d]", path, i)
		if _, err := ParseURL(text); err != nil {
			mistakes = append(mistakes, details.Faultf(place, "%q: %v", text, err).Hintf("write a URL such as opc.tcp://10.1.2.3:4840/"))
		}
		if slices.Contains(u.DiscoveryURLs[:i], text) {
			mistakes = append(mistakes, details.Faultf(place, "repeats %q", text).Hintf("remove one"))
		}
	}
	return errors.Join(mistakes...)
}

func (d *Details) checkFilters() error {
	return errors.Join(
		d.ApplicationNames.Check("applicationNames"),
		d.ApplicationURIs.Check("applicationUris"),
		d.ProductURIs.Check("productUris"),
	)
}

func (d *Details) checkTypes() error {
	if len(d.ApplicationTypes) == 0 {
		return details.Faultf("applicationTypes", "empty").Hintf("leave it out for Server and ClientAndServer")
	}
	for i, name := range d.ApplicationTypes {
		if !slices.Contains(types, name) {
			return details.Faultf(fmt.Sprintf("applicationTypes[%d]", i), "unknown type %q", name).
				Hintf("the types are %s", strings.Join(types, ", "))
		}
	}
	if d.ID != IDByURL && d.ID != IDByApplicationURI {
		return details.Faultf("id", "unknown value %q", d.ID).Hintf("write %s or %s", IDByURL, IDByApplicationURI)
	}
	return nil
}

func (d *Details) checkTiming() error {
	return cmp.Or(
		checkRange("intervalSeconds", d.IntervalSeconds, 1, maxIntervalSeconds),
		checkRange("misses", d.Misses, 1, maxMisses),
	)
}

// checkRange returns a fault if a number is out of range.
func checkRange(path string, value, lowest, highest int) error {
	if value < lowest || value > highest {
		return details.Faultf(path, "%d is out of range", value).Hintf("write a number from %d to %d", lowest, highest)
	}
	return nil
}
