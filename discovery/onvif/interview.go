package onvif

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"akri.sh/akri/discovery/internal/pool"
	"akri.sh/akri/discovery/onvif/details"
	"akri.sh/akri/discovery/onvif/soap"
	"akri.sh/akri/discovery/onvif/wsdiscovery"
	"akri.sh/akri/discovery/onvif/xmltree"
	"akri.sh/akri/internal/text"
)

// The namespaces of the services.
const (
	deviceService = "http://www.onvif.org/ver10/device/wsdl"
	mediaService  = "http://www.onvif.org/ver10/media/wsdl"
)

// interviewer asks cameras.
type interviewer struct {
	client      *soap.Client
	settings    *details.Details
	credentials credentialSet
	failed      func(reason string)
	places      *pool.Share
}

// perform carries out a request.
func (i *interviewer) perform(ctx context.Context, r request) outcome {
	leave, err := i.places.Acquire(ctx)
	if err != nil { // the session has ended
		return outcome{request: r}
	}
	defer leave()
	if r.check {
		return outcome{request: r, alive: i.check(ctx, r.key)}
	}
	limited, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return i.ask(limited, r)
}

// check reports whether a camera is there. Packets may be lost, so it tries several times
// before it says no; a refused connection has not been lost.
func (i *interviewer) check(ctx context.Context, k key) bool {
	for range checkAttempts {
		_, err := i.client.Do(ctx, soap.Call{URL: k.url, Namespace: deviceService, Operation: "GetSystemDateAndTime"})
		if soap.Alive(err) {
			return true
		}
		if ctx.Err() != nil || errors.Is(err, syscall.ECONNREFUSED) {
			return ctx.Err() != nil
		}
	}
	return false
}

// ask asks a camera for all that is known about devices.
func (i *interviewer) ask(ctx context.Context, r request) outcome {
	answer, err := i.client.Do(ctx, soap.Call{URL: r.url, Namespace: deviceService, Operation: "GetSystemDateAndTime"})
	if !soap.Alive(err) {
		if ctx.Err() == nil {
			i.failed(reasonOf(err))
		}
		return outcome{request: r}
	}
	c := &conversation{interviewer: i, key: r.key, offset: clockOffset(answer, time.Now()), facts: facts{}}
	uuid := r.uuid
	if uuid == "" {
		response := c.call(ctx, r.url, deviceService, "GetEndpointReference", "", nil)
		if uuid = wsdiscovery.NormalUUID(response.Value("GUID")); uuid == "" || clean(uuid) != uuid {
			return outcome{request: r}
		}
	}
	c.credentials = i.credentials.of(uuid)
	c.network(ctx)
	if i.settings.Wants(details.Information) {
		c.information(ctx)
	}
	if i.settings.Wants(details.Streams) {
		c.streams(ctx)
	}
	return outcome{
		request: r, alive: true, uuid: uuid, facts: c.facts,
		incomplete: c.incomplete, refused: c.refused,
	}
}

// clockOffset is how far the clock of a camera is ahead, from its answer to
// GetSystemDateAndTime; or from the HTTP header, if it wants credentials for that.
func clockOffset(answer soap.Answer, now time.Time) time.Duration {
	clock := answer.Response.Find("SystemDateAndTime", "UTCDateTime")
	number := func(path ...string) int {
		value, err := strconv.Atoi(clock.Value(path...))
		if err != nil || value < 0 || value > 9999 {
			return -1
		}
		return value
	}
	year, month, day := number("Date", "Year"), number("Date", "Month"), number("Date", "Day")
	hour, minute, second := number("Time", "Hour"), number("Time", "Minute"), number("Time", "Second")
	if min(year, month, day, hour, minute, second) >= 0 {
		return time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC).Sub(now)
	}
	if !answer.Date.IsZero() {
		return answer.Date.Sub(now)
	}
	return 0
}

// conversation is a series of calls to one camera.
type conversation struct {
	*interviewer
	key

	credentials *soap.Credentials
	offset      time.Duration
	facts       facts
	incomplete  bool
	refused     bool // the credentials are wrong: they are not tried again
}

// call calls an operation. It returns nil if the camera does not answer it, and counts
// that, unless the camera merely does not have the operation. It does not repeat
// credentials that the camera has refused.
func (c *conversation) call(
	ctx context.Context, service, namespace, operation, arguments string, credentials *soap.Credentials,
) *xmltree.Element {
	if c.refused && credentials != nil {
		return nil
	}
	answer, err := c.client.Do(ctx, soap.Call{
		URL: service, Namespace: namespace, Operation: operation, Arguments: arguments, Credentials: credentials, Offset: c.offset,
	})
	if err == nil {
		return answer.Response
	}
	if ctx.Err() == nil && (soap.Unauthorized(err) || !soap.Alive(err)) {
		c.failed(reasonOf(err))
	}
	c.refused = c.refused || credentials != nil && soap.Unauthorized(err)
	c.incomplete = c.incomplete || !soap.Alive(err)
	return nil
}

func (c *conversation) set(property, value string) {
	if value = clean(value); value != "" {
		c.facts[property] = value
	}
}

// network asks for the IP address and the MAC address. As in Akri, the first ones count.
func (c *conversation) network(ctx context.Context) {
	response := c.call(ctx, c.url, deviceService, "GetNetworkInterfaces", "", c.credentials)
	for _, config := range response.All("NetworkInterfaces", "IPv4", "Config") {
		for _, child := range config.Children {
			if address, err := netip.ParseAddr(child.Value("Address")); err == nil && c.facts[PropertyIPAddress] == "" {
				c.set(PropertyIPAddress, address.String())
			}
		}
	}
	c.set(PropertyMACAddress, response.Value("NetworkInterfaces", "Info", "HwAddress"))
}

func (c *conversation) information(ctx context.Context) {
	response := c.call(ctx, c.url, deviceService, "GetDeviceInformation", "", c.credentials)
	c.set(PropertyManufacturer, response.Value("Manufacturer"))
	c.set(PropertyModel, response.Value("Model"))
	c.set(PropertyFirmware, response.Value("FirmwareVersion"))
	c.set(PropertySerialNumber, response.Value("SerialNumber"))
	c.set(PropertyHardware, response.Value("HardwareId"))
}

// streams asks the media service for the URIs of the first profile. Credentials go only
// to the host of the device service.
func (c *conversation) streams(ctx context.Context) {
	capabilities := c.call(ctx, c.url, deviceService, "GetCapabilities", "<w:Category>Media</w:Category>", c.credentials)
	media := capabilities.Value("Capabilities", "Media", "XAddr")
	if media == "" {
		return
	}
	if !c.sameHost(media) {
		c.failed(failedForeign)
		return
	}
	profiles := c.call(ctx, media, mediaService, "GetProfiles", "", c.credentials)
	profile := soap.Escape(profiles.Find("Profiles").Attribute("token"))
	if profile == "" {
		return
	}
	token := "<w:ProfileToken>" + profile + "</w:ProfileToken>"
	setup := "<w:StreamSetup><tt:Stream>RTP-Unicast</tt:Stream><tt:Transport><tt:Protocol>RTSP</tt:Protocol></tt:Transport></w:StreamSetup>"
	stream := c.call(ctx, media, mediaService, "GetStreamUri", setup+token, c.credentials)
	c.setURI(PropertyStreamURI, stream.Value("MediaUri", "Uri"), "rtsp", "rtsps")
	snapshot := c.call(ctx, media, mediaService, "GetSnapshotUri", token, c.credentials)
	c.setURI(PropertySnapshotURI, snapshot.Value("MediaUri", "Uri"), "http", "https")
}

// sameHost reports whether a URL is on the camera, and not less secure than its device
// service.
func (c *conversation) sameHost(service string) bool {
	device, err := url.Parse(c.url)
	if err != nil {
		return false
	}
	other, err := url.Parse(service)
	return err == nil && other.User == nil && other.Hostname() == device.Hostname() &&
		(other.Scheme == "https" || other.Scheme == "http" && device.Scheme == "http")
}

// setURI sets a property to a URI without its user information. It leaves out a URI that
// has credentials elsewhere, or is on another host: brokers send their credentials there.
func (c *conversation) setURI(property, value string, schemes ...string) {
	if value == "" {
		return
	}
	uri, err := url.Parse(value)
	device, deviceErr := url.Parse(c.url)
	if err == nil && deviceErr == nil {
		uri.User = nil
		foreign := uri.Hostname() != device.Hostname() && !c.settings.AllowForeignXAddrs
		allowed := uri.Scheme == schemes[0] || uri.Scheme == schemes[1]
		if public := uri.String(); allowed && !foreign && !c.reveals(public) && clean(public) == public {
			c.facts[property] = public
			return
		}
	}
	c.failed(failedURI)
}

// reveals reports whether a URI seems to contain a password, as those of some cameras do.
func (c *conversation) reveals(uri string) bool {
	unescaped, err := url.PathUnescape(uri)
	if err != nil {
		unescaped = uri
	}
	lower := strings.ToLower(unescaped)
	for _, word := range []string{"password", "passwd", "pwd=", "pass=", "psw="} {
		if strings.Contains(lower, word) {
			return true
		}
	}
	// A short password would be found by chance.
	return c.credentials != nil && len(c.credentials.Password) >= 4 &&
		(strings.Contains(unescaped, c.credentials.Password) || strings.Contains(uri, c.credentials.Password))
}

// clean returns text of a camera for a property: on one line, of bounded length.
func clean(value string) string {
	value = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.TrimSpace(value))
	return text.Truncate(value, maxPropertyBytes)
}

// reasonOf returns the reason of a failed call, for the metrics.
func reasonOf(err error) string {
	var network net.Error
	switch {
	case soap.Unauthorized(err):
		return failedUnauthorized
	case errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout():
		return failedTimeout
	case errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH):
		return failedUnreachable
	}
	return failedAnswer
}
