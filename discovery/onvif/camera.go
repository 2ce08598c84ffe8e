package onvif

import (
	"cmp"
	"errors"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/onvif/details"
	"akri.sh/akri/discovery/onvif/wsdiscovery"
)

// The properties of a device. The first four are Akri's.
const (
	PropertyServiceURL   = "ONVIF_DEVICE_SERVICE_URL"
	PropertyUUID         = "ONVIF_DEVICE_UUID"
	PropertyIPAddress    = "ONVIF_DEVICE_IP_ADDRESS"
	PropertyMACAddress   = "ONVIF_DEVICE_MAC_ADDRESS"
	PropertyManufacturer = "ONVIF_DEVICE_MANUFACTURER"
	PropertyModel        = "ONVIF_DEVICE_MODEL"
	PropertySerialNumber = "ONVIF_DEVICE_SERIAL_NUMBER"
	PropertyFirmware     = "ONVIF_DEVICE_FIRMWARE"
	PropertyHardware     = "ONVIF_DEVICE_HARDWARE"
	PropertyStreamURI    = "ONVIF_STREAM_URI"
	PropertySnapshotURI  = "ONVIF_SNAPSHOT_URI"
)

// key identifies a camera: one URL of one device.
type key struct {
	// url is the URL of the device service, in its normal form.
	url string
	// uuid is empty if the camera was found at a listed address and has not yet said it.
	uuid string
}

// host returns the host in the URL.
func (k key) host() string {
	parsed, err := url.Parse(k.url)
	if err != nil {
		return ""
	}
	name := parsed.Hostname()
	if address, err := netip.ParseAddr(name); err == nil {
		return address.Unmap().String()
	}
	return strings.ToLower(name)
}

// normalURL returns the form of a URL that all of its spellings have.
func normalURL(written string) string {
	parsed, err := url.Parse(written)
	if err != nil {
		return written
	}
	host, port := key{url: written}.host(), parsed.Port()
	if port == map[string]string{"http": "80", "https": "443"}[parsed.Scheme] {
		port = ""
	}
	parsed.Host = strings.TrimSuffix(net.JoinHostPort(host, port), ":")
	return parsed.String()
}

// facts are what a camera has said about itself, by the name of the property. They never
// contain credentials.
type facts map[string]string

// camera is a camera that has announced itself.
type camera struct {
	key

	// written is the shortest spelling of its URL that was announced.
	written string
	// host is the host in its URL.
	host string
	// from is the host that has announced it.
	from netip.Addr
	// found is when it first answered a request, or when another URL of the device was last
	// preferred to it. It is zero until the first answer: until then, it is not a device.
	found time.Time
	facts facts
	// name and hardware are in the scopes of its last announcement; empty if they are not.
	name, hardware string
	// reading is the one of its clock that its credentials have the time of; see clockReadings.
	reading int
	// asked means that a request has ended, well or not.
	asked bool
	// due is when the next request is due; zero while one is under way.
	due time.Time
	// began is when the request under way began, zero if there is none, and pool is the pool
	// whose limit it counts towards.
	began time.Time
	pool  int
	// heard means that it has announced itself since the last probe was evaluated.
	heard bool
	// missed counts probes since it was last heard.
	missed int
	// failures counts requests since the last one that it answered.
	failures int
	// slow means that it never answered, and that its last request did not end soon.
	slow bool
	// incomplete counts requests in a row that it answered in part.
	incomplete int
	// hello is when it was last asked because of a Hello.
	hello time.Time
	// suspicion counts the checks after a Bye, from 1; 0 if there was none.
	suspicion int
	// listed means that its address is in the details, so that nothing announces it.
	listed bool
}

// admitted reports whether a camera passes the filters for its addresses. If it does not
// say its IP address, which may need credentials, the one in its URL counts.
func (c *camera) admitted(d *details.Details) bool {
	return d.IPAddresses.Admits(details.MatchesAddress, c.ip()) && d.MACAddresses.Admits(details.MatchesMAC, c.facts[PropertyMACAddress])
}

func (c *camera) ip() string {
	if ip := c.facts[PropertyIPAddress]; ip != "" {
		return ip
	}
	if _, err := netip.ParseAddr(c.host); err != nil { // a name
		return ""
	}
	return c.host
}

// id returns the id of a device with a UUID, as a Configuration wants it; "" if it is not known.
func (f facts) id(wanted, uuid string) string {
	switch wanted {
	case details.ByMAC:
		return strings.ToLower(strings.ReplaceAll(f[PropertyMACAddress], "-", ":"))
	case details.BySerial:
		return f[PropertySerialNumber]
	}
	return uuid
}

// device returns the device of a camera.
func (c *camera) device(id string) discovery.Device {
	properties := maps.Clone(c.facts)
	if properties == nil {
		properties = facts{}
	}
	properties[PropertyServiceURL] = c.written
	properties[PropertyUUID] = c.uuid
	if ip := c.ip(); ip != "" {
		properties[PropertyIPAddress] = ip
	}
	properties[discovery.DisplayName] = c.displayName()
	if id == details.ByURL {
		return discovery.Device{ID: c.written + "-" + c.uuid, Properties: properties}
	}
	return discovery.Device{ID: c.facts.id(id, c.uuid), Properties: properties}
}

// displayName returns the name and the model of a camera, as far as it says them, and where it is.
func (c *camera) displayName() string {
	model := cmp.Or(strings.TrimSpace(c.facts[PropertyManufacturer]+" "+c.facts[PropertyModel]), c.hardware)
	return cmp.Or(strings.Trim(c.name+", "+model, ", "), "camera") + " at " + cmp.Or(c.ip(), c.host)
}

// scope returns the value of a scope of the standard, such as name, or "".
func scope(scopes []string, kind string) string {
	for _, written := range scopes {
		if value, found := strings.CutPrefix(written, "onvif://www.onvif.org/"+kind+"/"); found {
			text, err := url.PathUnescape(value)
			return clean(map[bool]string{true: text, false: value}[err == nil])
		}
	}
	return ""
}

// devices returns the devices of cameras, sorted by id. If it is not the URL, a camera with
// several URLs is one device, at the URL that has been announced for the longest time.
func devices(cameras []*camera, d *details.Details) []discovery.Device {
	slices.SortFunc(cameras, func(a, b *camera) int {
		return cmp.Or(a.found.Compare(b.found), strings.Compare(a.url, b.url))
	})
	all := make([]discovery.Device, 0, len(cameras))
	seen := make(map[string]bool, len(cameras))
	for _, c := range cameras {
		device := c.device(d.ID)
		if c.admitted(d) && device.ID != "" && !seen[device.ID] {
			seen[device.ID] = true
			all = append(all, device)
		}
	}
	slices.SortFunc(all, func(a, b discovery.Device) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// admits reports whether a device passes the filters for what it announces.
func admits(d *details.Details, uuid string, scopes []string) bool {
	matches := func(item, value string) bool { return wsdiscovery.NormalUUID(item) == value }
	return d.UUIDs.Admits(matches, uuid) && d.Scopes.Admits(details.MatchesScope, scopes...)
}

// checkURL returns an error unless a URL that a host announces is one of a device service
// that may be asked. The URL must be on that host, unless others are allowed.
func checkURL(text string, from netip.Addr, d *details.Details) error {
	parsed, err := url.Parse(text)
	if err != nil {
		return errors.New("not a URL")
	}
	switch {
	case parsed.Scheme != "http" && parsed.Scheme != "https":
		return errors.New("neither http nor https")
	case parsed.User != nil || parsed.Fragment != "" || parsed.Hostname() == "" || strings.ContainsAny(text, "\"'<>\\`"):
		return errors.New("has parts that no device service has")
	}
	address, err := netip.ParseAddr(parsed.Hostname())
	switch {
	case err == nil && (address.Zone() != "" || address.IsLinkLocalUnicast() && address.Unmap() != from.Unmap()):
		return errors.New("only on a link of the camera")
	case err == nil && details.CheckAddress(address) != nil:
		return details.CheckAddress(address)
	case !d.AllowForeignXAddrs && (err != nil || address.Unmap() != from.Unmap()):
		return errors.New("on another host than the one that announces it")
	}
	return nil
}
