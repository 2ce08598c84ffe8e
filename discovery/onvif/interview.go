package onvif

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"

	"akri.sh/akri/discovery/monitor"
	"akri.sh/akri/discovery/onvif/details"
	"akri.sh/akri/discovery/onvif/soap"
	"akri.sh/akri/discovery/onvif/wsdiscovery"
	"akri.sh/akri/internal/text"
)

// The namespaces of the services.
const (
	deviceService = "http://www.onvif.org/ver10/device/wsdl"
	mediaService  = "http://www.onvif.org/ver10/media/wsdl"
	media2Service = "http://www.onvif.org/ver20/media/wsdl"
)

// interviewer asks cameras.
type interviewer struct {
	*monitor.Reporter

	client      *soap.Client
	settings    *details.Details
	credentials credentialSet
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
		switch {
		case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded): // the session has ended
		case r.spare:
			i.Once(reasonOf(err), r.url, err)
		default:
			i.Failed(reasonOf(err), r.url, err)
		}
		return outcome{request: r}
	}
	c := &conversation{
		interviewer: i, outcome: outcome{request: r, alive: true, uuid: r.uuid, facts: facts{}}, own: []string{r.host()},
		clocks: clockReadings(answer, time.Now()), credentials: i.credentials.of(r.uuid),
	}
	if c.uuid == "" && !c.identify(ctx) {
		return outcome{request: r}
	}
	c.network(ctx)
	if i.settings.Wants(details.Information) || i.settings.ID == details.BySerial {
		c.information(ctx)
	}
	if i.settings.Wants(details.Streams) {
		c.streams(ctx)
	}
	if !c.incomplete && i.settings.ID != details.ByURL && c.facts.id(i.settings.ID, c.uuid) == "" {
		i.Once(failedID, r.url, fmt.Errorf("the camera does not report what identifies it with id: %s", i.settings.ID))
	}
	return c.outcome
}

// conversation is a series of calls to one camera, and what it has said. Credentials that it
// has refused are not tried again.
type conversation struct {
	*interviewer
	outcome

	credentials *soap.Credentials
	accepted    bool
	clocks      []time.Duration // the readings of its clock, of which request.reading counts
	retried     bool            // with another reading
	own         []string        // hosts that are the camera itself: the one in its URL is the first
}

// call calls an operation. The response is empty if the camera does not answer it, which
// counts as a failure, unless the camera merely does not have the operation. If it refuses the
// first credentials, it may mean the time in them, so that they are tried once more with another
// reading of its clock.
func (c *conversation) call(
	ctx context.Context, service, namespace, operation, arguments string, credentials *soap.Credentials,
) soap.Response {
	if c.refused && credentials != nil {
		return soap.Response{}
	}
	answer, err := c.client.Do(ctx, soap.Call{
		URL: service, Namespace: namespace, Operation: operation, Arguments: arguments, Credentials: credentials,
		Offset: c.clocks[c.reading%len(c.clocks)],
	})
	if err == nil {
		c.accepted = c.accepted || credentials != nil
		return answer.Response
	}
	isRefusal := soap.Unauthorized(err)
	if isRefusal && credentials != nil && !c.accepted {
		c.reading++
		if !c.retried && len(c.clocks) > 1 {
			c.retried = true
			return c.call(ctx, service, namespace, operation, arguments, credentials)
		}
		c.refused = true
	}
	isTried := credentials == nil && c.credentials != nil // with credentials next
	if ctx.Err() == nil && (isRefusal && !isTried || !soap.Alive(err)) {
		c.Once(reasonOf(err), c.url, fmt.Errorf("%s: %w", operation, err))
	}
	c.incomplete = c.incomplete || !soap.Alive(err)
	return soap.Response{}
}

// identify asks a camera at a listed address what it would announce. A camera that does not say
// its UUID, as many do not, gets one of its URL. It reports whether the camera has answered.
func (c *conversation) identify(ctx context.Context) bool {
	for _, credentials := range slices.Compact([]*soap.Credentials{nil, c.credentials}) {
		response := c.call(ctx, c.url, deviceService, "GetEndpointReference", "", credentials)
		if c.outcome.uuid = wsdiscovery.NormalUUID(response.GUID); c.outcome.uuid != "" {
			break
		}
	}
	if clean(c.outcome.uuid) != c.outcome.uuid || c.outcome.uuid == "" {
		c.outcome.uuid = uuid.NewSHA1(uuid.NameSpaceURL, []byte(c.url)).String()
	}
	c.credentials = c.interviewer.credentials.of(c.outcome.uuid)
	if c.settings.Scopes != nil {
		c.scopes = c.call(ctx, c.url, deviceService, "GetScopes", "", c.credentials).Scopes
	}
	return !c.incomplete
}

func (c *conversation) set(property, value string) {
	if value = clean(value); value != "" {
		c.facts[property] = value
	}
}

// network asks for the IP address and the MAC address.
func (c *conversation) network(ctx context.Context) {
	interfaces := c.call(ctx, c.url, deviceService, "GetNetworkInterfaces", "", c.credentials).Interfaces
	for _, i := range interfaces {
		c.own = append(c.own, addressesOf(i)...)
	}
	ip, mac := chooseAddresses(interfaces, c.host())
	c.set(PropertyIPAddress, ip)
	c.set(PropertyMACAddress, mac)
}

// chooseAddresses returns the addresses of the interface that has the address in the URL; or else
// of the first one that has both, as in Akri, or one of them.
func chooseAddresses(interfaces []soap.Interface, host string) (ip, mac string) {
	best := 0
	for _, i := range interfaces {
		addresses, hardware, rank := addressesOf(i), clean(i.MAC), 0
		if strings.Trim(hardware, "0:-.") != "" && !isOff(i.Enabled) {
			rank++
		} else {
			hardware = ""
		}
		switch {
		case slices.Contains(addresses, host):
			addresses[0], rank = host, 3
		case len(addresses) > 0:
			rank++
		default:
			addresses = []string{""}
		}
		if rank > best {
			best, ip, mac = rank, addresses[0], hardware
		}
	}
	return ip, mac
}

func isOff(enabled string) bool { return strings.TrimSpace(enabled) == "false" }

// addressesOf returns the addresses of an interface by which others can reach the camera.
func addressesOf(i soap.Interface) []string {
	var all []string
	for _, from := range slices.Concat(i.IPv4.Config.From, i.IPv6.Config.From) {
		address, err := netip.ParseAddr(strings.TrimSpace(from.Address))
		if err == nil && details.CheckAddress(address) == nil && !isOff(i.Enabled) && !(address.Is4() && isOff(i.IPv4.Enabled)) {
			all = append(all, address.Unmap().String())
		}
	}
	return all
}

func (c *conversation) information(ctx context.Context) {
	response := c.call(ctx, c.url, deviceService, "GetDeviceInformation", "", c.credentials)
	c.set(PropertyManufacturer, response.Manufacturer)
	c.set(PropertyModel, response.Model)
	c.set(PropertyFirmware, response.FirmwareVersion)
	c.set(PropertySerialNumber, response.SerialNumber)
	c.set(PropertyHardware, response.Hardware)
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
	operation, _ := errors.AsType[*net.OpError](err)
	switch {
	case soap.Unauthorized(err):
		return failedUnauthorized
	case errors.Is(err, context.DeadlineExceeded) || operation != nil && operation.Timeout():
		return failedTimeout
	case operation != nil && operation.Op == "dial":
		return failedUnreachable
	}
	return failedAnswer
}
