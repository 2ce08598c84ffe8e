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

	"golang.org/x/sync/semaphore"

	"akri.sh/akri/discovery/onvif/details"
	"akri.sh/akri/discovery/onvif/soap"
	"akri.sh/akri/discovery/onvif/wsdiscovery"
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
}

// requests are the places for requests to cameras, which all Configurations share.
var requests = semaphore.NewWeighted(maxRequests)

// perform carries out a request.
func (i *interviewer) perform(ctx context.Context, r request) outcome {
	if requests.Acquire(ctx, 1) != nil { // the session has ended
		return outcome{request: r}
	}
	defer requests.Release(1)
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
	c := &conversation{
		interviewer: i, offset: clockOffset(answer, time.Now()), outcome: outcome{request: r, alive: true, uuid: r.uuid, facts: facts{}},
	}
	if c.uuid == "" {
		response := c.call(ctx, r.url, deviceService, "GetEndpointReference", "", nil)
		if c.uuid = wsdiscovery.NormalUUID(response.GUID); c.uuid == "" || clean(c.uuid) != c.uuid {
			return outcome{request: r}
		}
	}
	c.credentials = i.credentials.of(c.uuid)
	c.network(ctx)
	if i.settings.Wants(details.Information) {
		c.information(ctx)
	}
	if i.settings.Wants(details.Streams) {
		c.streams(ctx)
	}
	return c.outcome
}

// clockOffset is how far the clock of a camera is ahead, from its answer to
// GetSystemDateAndTime; or from the HTTP header, if it wants credentials for that.
func clockOffset(answer soap.Answer, now time.Time) time.Duration {
	number := func(written string) int {
		value, err := strconv.Atoi(strings.TrimSpace(written))
		if err != nil || value < 0 || value > 9999 {
			return -1
		}
		return value
	}
	utc := answer.Response.UTC
	year, month, day := number(utc.Year), number(utc.Month), number(utc.Day)
	hour, minute, second := number(utc.Hour), number(utc.Minute), number(utc.Second)
	if min(year, month, day, hour, minute, second) >= 0 {
		return time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC).Sub(now)
	}
	if !answer.Date.IsZero() {
		return answer.Date.Sub(now)
	}
	return 0
}

// conversation is a series of calls to one camera, and what it has said. Credentials that it
// has refused are not tried again.
type conversation struct {
	*interviewer
	outcome

	credentials *soap.Credentials
	offset      time.Duration
}

// call calls an operation. The response is empty if the camera does not answer it, which
// counts as a failure, unless the camera merely does not have the operation.
func (c *conversation) call(
	ctx context.Context, service, namespace, operation, arguments string, credentials *soap.Credentials,
) soap.Response {
	if c.refused && credentials != nil {
		return soap.Response{}
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
	return soap.Response{}
}

func (c *conversation) set(property, value string) {
	if value = clean(value); value != "" {
		c.facts[property] = value
	}
}

// network asks for the IP address and the MAC address. As in Akri, the first ones count.
func (c *conversation) network(ctx context.Context) {
	response := c.call(ctx, c.url, deviceService, "GetNetworkInterfaces", "", c.credentials)
	for _, config := range response.IPv4 {
		for _, from := range config.From {
			address, err := netip.ParseAddr(strings.TrimSpace(from.Address))
			if err == nil && c.facts[PropertyIPAddress] == "" {
				c.set(PropertyIPAddress, address.String())
			}
		}
	}
	if len(response.MACs) > 0 {
		c.set(PropertyMACAddress, response.MACs[0])
	}
}

func (c *conversation) information(ctx context.Context) {
	response := c.call(ctx, c.url, deviceService, "GetDeviceInformation", "", c.credentials)
	c.set(PropertyManufacturer, response.Manufacturer)
	c.set(PropertyModel, response.Model)
	c.set(PropertyFirmware, response.FirmwareVersion)
	c.set(PropertySerialNumber, response.SerialNumber)
	c.set(PropertyHardware, response.Hardware)
}

// streams asks the media service for the URIs of the first profile. Credentials go only
// to the host of the device service.
func (c *conversation) streams(ctx context.Context) {
	capabilities := c.call(ctx, c.url, deviceService, "GetCapabilities", "<w:Category>Media</w:Category>", c.credentials)
	media := strings.TrimSpace(capabilities.Media)
	if media == "" {
		return
	}
	if !c.sameHost(media) {
		c.failed(failedForeign)
		return
	}
	profiles := c.call(ctx, media, mediaService, "GetProfiles", "", c.credentials).Profiles
	if len(profiles) == 0 || profiles[0].Token == "" {
		return
	}
	token := "<w:ProfileToken>" + soap.Escape(profiles[0].Token) + "</w:ProfileToken>"
	setup := "<w:StreamSetup><tt:Stream>RTP-Unicast</tt:Stream><tt:Transport><tt:Protocol>RTSP</tt:Protocol></tt:Transport></w:StreamSetup>"
	stream := c.call(ctx, media, mediaService, "GetStreamUri", setup+token, c.credentials)
	c.setURI(PropertyStreamURI, strings.TrimSpace(stream.URI), "rtsp", "rtsps")
	snapshot := c.call(ctx, media, mediaService, "GetSnapshotUri", token, c.credentials)
	c.setURI(PropertySnapshotURI, strings.TrimSpace(snapshot.URI), "http", "https")
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
	return strings.Clone(text.Truncate(value, maxPropertyBytes)) // without the rest of the answer
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
