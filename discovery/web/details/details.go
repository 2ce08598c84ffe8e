package details

import (
	"errors"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"akri.sh/akri/discovery/details"
	"akri.sh/akri/internal/text"
)

// Bounds on what a Configuration may request.
const (
	// maxURLs is the number of devices that the agent accepts of one Configuration.
	maxURLs       = 1000
	maxURLBytes   = 2048
	maxProperties = 100
	maxSeconds    = 24 * 60 * 60
	// maxTimeoutSeconds bounds how long a device that hangs keeps requests of others waiting.
	maxTimeoutSeconds = 60
	maxMisses         = 1000
	minimumSeconds    = 1
)

// Details is what a Configuration requests.
type Details struct {
	// URLs are devices: each exists as long as it responds as expected.
	URLs []string `json:"urls"`
	// Index lists further devices.
	Index *Index `json:"index"`
	// Expect says which responses of a device count. Nil: any status from 200 to 299.
	Expect *Expect `json:"expect"`
	// Properties maps names of properties to paths in a device's response, which must
	// then be JSON.
	Properties map[string]string `json:"properties"`
	TLS        TLS               `json:"tls"`

	IntervalSeconds int `json:"intervalSeconds"`
	TimeoutSeconds  int `json:"timeoutSeconds"`
	// Misses is how many requests in a row must fail before a device is gone.
	Misses int `json:"misses"`
}

// Index is a URL whose response lists devices: as lines with one URL each, or as JSON.
type Index struct {
	URL string `json:"url"`
	// Items is the path of the list in a JSON response; empty if the response is the
	// list.
	Items string `json:"items"`
	// Address is the path of a device's URL in an item; empty if the item is the URL.
	Address string `json:"address"`
	// ID is the path of a device's id in an item; empty if the URL is the id.
	ID string `json:"id"`
	// Properties maps names of properties to paths in an item.
	Properties map[string]string `json:"properties"`
}

// Expect says which responses of a device count.
type Expect struct {
	// Status lists status codes. Empty: any from 200 to 299.
	Status []int `json:"status"`
	// Path is a path in the response, which must then be JSON, and Values are the
	// values it may have. Without values, it must exist.
	Path   string   `json:"path"`
	Values []string `json:"values"`
}

// TLS names the discoveryProperties with PEM data for https.
type TLS struct {
	CAProperty   string `json:"caProperty"`
	CertProperty string `json:"certProperty"`
	KeyProperty  string `json:"keyProperty"`
	// InsecureSkipVerify accepts any certificate.
	InsecureSkipVerify bool `json:"insecureSkipVerify"`
}

// Interval is the time between two requests to a device.
func (d *Details) Interval() time.Duration { return time.Duration(d.IntervalSeconds) * time.Second }

// Timeout bounds a request.
func (d *Details) Timeout() time.Duration { return time.Duration(d.TimeoutSeconds) * time.Second }

// Requested reports whether devices are requested. Those of an index are not, unless
// something is wanted of their responses.
func (d *Details) Requested() bool {
	return d.Index == nil || d.Expect != nil || len(d.Properties) > 0
}

// Parse returns what discoveryDetails request, or a *details.Fault. A single URL instead
// of a map is that of an index, as for the handler in Akri's tutorial.
func Parse(discoveryDetails string) (*Details, error) {
	d := &Details{IntervalSeconds: 10, TimeoutSeconds: 5, Misses: 3}
	if address, ok := details.Text(discoveryDetails); ok && address != "" {
		d.Index, discoveryDetails = &Index{URL: strings.TrimSpace(address)}, ""
	}
	if err := details.Decode(discoveryDetails, d, d.checkTargets, d.checkExpect, d.checkProperties, d.checkTLS, d.checkNumbers); err != nil {
		return nil, err
	}
	return d, nil
}

func (d *Details) checkTargets() error {
	switch {
	case len(d.URLs) == 0 && d.Index == nil:
		return details.Faultf("", "neither urls nor index is set").
			Hintf("list the URLs of devices in urls, or give the URL of a list in index.url")
	case len(d.URLs) > 0 && d.Index != nil:
		return details.Faultf("index", "urls and index exclude each other").Hintf("use two Configurations")
	case len(d.URLs) > maxURLs:
		return details.Faultf("urls", "%d URLs, more than %d", len(d.URLs), maxURLs).Hintf("use several Configurations")
	}
	var mistakes []error
	for i, address := range d.URLs {
		path := "urls[" + strconv.Itoa(i) + "]"
		mistakes = append(mistakes, checkURL(path, address))
		if slices.Index(d.URLs, address) != i {
			mistakes = append(mistakes, details.Faultf(path, "repeats %s", address).Hintf("use a different URL for each device"))
		}
	}
	if d.Index == nil {
		return errors.Join(mistakes...)
	}
	if err := checkURL("index.url", d.Index.URL); err != nil {
		return err
	}
	return checkPaths(map[string]string{"index.items": d.Index.Items, "index.address": d.Index.Address, "index.id": d.Index.ID})
}

func (d *Details) checkExpect() error {
	if d.Expect == nil {
		return nil
	}
	for i, status := range d.Expect.Status {
		if status < 100 || status > 599 {
			return details.Faultf("expect.status["+strconv.Itoa(i)+"]", "%d is not a status code", status).Hintf("write one from 100 to 599")
		}
	}
	if d.Expect.Path == "" && len(d.Expect.Values) > 0 {
		return details.Faultf("expect.values", "expect.path is missing").Hintf("write which part of the response has one of these values")
	}
	return checkPaths(map[string]string{"expect.path": d.Expect.Path})
}

func (d *Details) checkProperties() error {
	all := map[string]map[string]string{"properties": d.Properties}
	if d.Index != nil {
		all["index.properties"] = d.Index.Properties
	}
	for _, place := range slices.Sorted(maps.Keys(all)) { // always the same mistake first
		properties := all[place]
		if len(properties) > maxProperties {
			return details.Faultf(place, "%d properties, more than %d", len(properties), maxProperties)
		}
		paths := map[string]string{}
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			path := properties[name]
			if err := details.CheckVariable(place, name); err != nil {
				return err
			}
			if path == "" {
				return details.Faultf(place+"."+name, "no path").Hintf("write which part of the response it is, such as info.model")
			}
			paths[place+"."+name] = path
		}
		if err := checkPaths(paths); err != nil {
			return err
		}
	}
	return nil
}

func (d *Details) checkTLS() error {
	if (d.TLS.CertProperty == "") != (d.TLS.KeyProperty == "") {
		return details.Faultf("tls", "only one of certProperty and keyProperty is set").Hintf("set both, or none")
	}
	return nil
}

func (d *Details) checkNumbers() error {
	for _, field := range []struct {
		name                    string
		value, minimum, maximum int
	}{
		{"intervalSeconds", d.IntervalSeconds, minimumSeconds, maxSeconds},
		{"timeoutSeconds", d.TimeoutSeconds, minimumSeconds, maxTimeoutSeconds},
		{"misses", d.Misses, 1, maxMisses},
	} {
		if field.value < field.minimum || field.value > field.maximum {
			return details.Faultf(field.name, "%d is not between %d and %d", field.value, field.minimum, field.maximum)
		}
	}
	return nil
}

// CheckURL returns the mistake in the URL of a device.
func CheckURL(address string) error { return checkURL("", address) }

func checkURL(path, address string) error {
	if len(address) > maxURLBytes {
		return details.Faultf(path, "%d bytes, more than %d", len(address), maxURLBytes)
	}
	parsed, err := url.Parse(address)
	switch {
	case err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https":
		return details.Faultf(path, "%q is not a URL of http or https", text.Truncate(address, 100)).
			Hintf("write one such as http://10.0.0.5/status")
	case parsed.User != nil:
		return details.Faultf(path, "contains a user name").Hintf("put username and password into discoveryProperties")
	}
	return nil
}

// checkPaths returns the mistake in the first of some paths, by place. A path may be empty.
func checkPaths(paths map[string]string) error {
	for _, place := range slices.Sorted(maps.Keys(paths)) {
		if paths[place] == "" {
			continue
		}
		if err := details.CheckPath(place, "", paths[place]); err != nil {
			return err
		}
	}
	return nil
}
