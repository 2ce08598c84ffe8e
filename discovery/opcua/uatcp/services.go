package uatcp

import (
	"fmt"
	"math"
)

// The names of values in the specification.
var (
	typeNames = []string{"Server", "Client", "ClientAndServer", "DiscoveryServer"}
	modeNames = []string{"Invalid", "None", "Sign", "SignAndEncrypt"}
)

// Application describes an application, as a server reports it.
type Application struct {
	URI        string
	ProductURI string
	Name       string
	// Type is Server, Client, ClientAndServer or DiscoveryServer, or empty if the
	// application is one that a discovery server has found on its network.
	Type string
	// DiscoveryURLs are in the server's order.
	DiscoveryURLs []string
}

// Endpoint is one way to connect to a server.
type Endpoint struct {
	URL    string
	Server Application
	// Mode is the message security mode: None, Sign or SignAndEncrypt.
	Mode string
	// Policy is the URI of the security policy.
	Policy string
}

// The numeric node IDs of messages in the binary encoding.
const (
	serviceFaultID          = 397
	findServersRequestID    = 422
	findServersResponseID   = 425
	getEndpointsRequestID   = 428
	getEndpointsResponseID  = 431
	openChannelRequestID    = 446
	openChannelResponseID   = 449
	closeChannelRequestID   = 452
	findOnNetworkRequestID  = 12208
	findOnNetworkResponseID = 12209
)

// Bounds on the lists in an answer. The caller keeps something of each element, so a longer
// list is an error.
const (
	maxApplications       = 5000
	maxURLsPerApplication = 64
	maxEndpoints          = 256
)

// FindServers calls found with the applications that a server knows: itself or, if it is a
// discovery server, those that have registered with it. If there is an error, it may come
// after some of them. The same holds for the other services.
func (c *Channel) FindServers(found func(Application)) error {
	return c.list("FindServers", findServersRequestID, findServersResponseID, func(e *encoder) {
		e.string(c.url)
		e.null() // locales
		e.null() // URIs: all servers
	}, func(answer *decoder) {
		elements(answer, maxApplications, (*decoder).application, found)
	})
}

// FindServersOnNetwork calls found with the servers that a discovery server has found on
// its network. It knows only their names and URLs. Most servers do not support it.
func (c *Channel) FindServersOnNetwork(found func(Application)) error {
	return c.list("FindServersOnNetwork", findOnNetworkRequestID, findOnNetworkResponseID, func(e *encoder) {
		e.uint32(0) // the first record
		e.uint32(0) // no limit
		e.null()    // any capability
	}, func(answer *decoder) {
		answer.skip(8) // when the counter was reset
		elements(answer, maxApplications, (*decoder).record, found)
	})
}

// GetEndpoints calls found with the endpoints that the server has for a URL. Each comes
// with the server's own description.
func (c *Channel) GetEndpoints(url string, found func(Endpoint)) error {
	return c.list("GetEndpoints", getEndpointsRequestID, getEndpointsResponseID, func(e *encoder) {
		e.string(url)
		e.null() // locales
		e.null() // any transport profile
	}, func(answer *decoder) {
		elements(answer, maxEndpoints, (*decoder).endpoint, found)
	})
}

// list calls a service and reads its answer.
func (c *Channel) list(service string, request uint16, response uint32, body func(*encoder), read func(*decoder)) error {
	err := c.send("MSG", request, body)
	if err == nil {
		err = c.receive("MSG", response, read)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", service, err)
	}
	return nil
}

// elements calls found with the elements of a list that are complete.
func elements[T any](d *decoder, maximum uint32, read func(*decoder) T, found func(T)) {
	d.list(maximum, func() {
		if element := read(d); d.err == nil {
			found(element)
		}
	})
}

func (d *decoder) application() Application {
	a := Application{URI: d.string(), ProductURI: d.string(), Name: d.localizedText(), Type: d.name(typeNames)}
	d.skipString() // the gateway's URI
	d.skipString() // the discovery profile's URI
	d.list(maxURLsPerApplication, func() { a.DiscoveryURLs = append(a.DiscoveryURLs, d.string()) })
	return a
}

// record reads a record of a network.
func (d *decoder) record() Application {
	d.skip(4) // its number
	a := Application{Name: d.string(), DiscoveryURLs: []string{d.string()}}
	d.list(math.MaxInt32, d.skipString) // capabilities
	return a
}

func (d *decoder) endpoint() Endpoint {
	e := Endpoint{URL: d.string(), Server: d.application()}
	d.skipString() // the certificate
	e.Mode = d.name(modeNames)
	e.Policy = d.string()
	d.list(math.MaxInt32, func() {
		d.skipString()
		d.skip(4)
		d.skipString()
		d.skipString()
		d.skipString()
	})
	d.skipString() // the transport profile
	d.skip(1)      // the security level
	return e
}
