package uatcp

import "fmt"

// ApplicationType is what an application is.
type ApplicationType uint32

// The types of applications.
const (
	TypeServer ApplicationType = iota
	TypeClient
	TypeClientAndServer
	TypeDiscoveryServer
)

// String returns the name in the specification.
func (t ApplicationType) String() string {
	switch t {
	case TypeServer:
		return "Server"
	case TypeClient:
		return "Client"
	case TypeClientAndServer:
		return "ClientAndServer"
	case TypeDiscoveryServer:
		return "DiscoveryServer"
	}
	return fmt.Sprintf("ApplicationType(%d)", uint32(t))
}

// Application describes an application, as a server reports it.
type Application struct {
	URI        string
	ProductURI string
	Name       string
	Type       ApplicationType
	// DiscoveryURLs are in the server's order.
	DiscoveryURLs []string
}

// Record is a server that a discovery server has found on its network.
type Record struct {
	Name         string
	DiscoveryURL string
	Capabilities []string
}

// Endpoint is one way to connect to a server.
type Endpoint struct {
	URL    string
	Server Application
	// Mode is the message security mode: None, Sign or SignAndEncrypt.
	Mode string
	// Policy is the URI of the security policy.
	Policy string
	// Transport is the URI of the transport profile.
	Transport string
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

// Bounds on what an answer may contain. A longer list is an error.
const (
	maxApplications       = 5000
	maxURLsPerApplication = 64
	maxEndpoints          = 256
	maxTokensPerEndpoint  = 64
	maxCapabilities       = 64
)

// The sizes of structures whose strings and lists are all empty.
const (
	minApplicationBytes = 25
	minRecordBytes      = 16
	minEndpointBytes    = 4 + minApplicationBytes + 21
	minTokenBytes       = 20
)

// FindServers returns the applications that a server knows: itself or, if it is a
// discovery server, those that have registered with it.
func (c *Channel) FindServers() ([]Application, error) {
	answer, err := c.call(findServersRequestID, findServersResponseID, func(e *encoder) {
		e.string(c.url)
		e.null() // locales
		e.null() // URIs: all servers
	})
	if err != nil {
		return nil, fmt.Errorf("FindServers: %w", err)
	}
	applications := list(answer, maxApplications, minApplicationBytes, decodeApplication)
	return applications, answer.fault("FindServers")
}

// FindServersOnNetwork returns the servers that a discovery server has found on its
// network. Most servers do not support it.
func (c *Channel) FindServersOnNetwork() ([]Record, error) {
	answer, err := c.call(findOnNetworkRequestID, findOnNetworkResponseID, func(e *encoder) {
		e.uint32(0) // the first record
		e.uint32(0) // no limit
		e.null()    // any capability
	})
	if err != nil {
		return nil, fmt.Errorf("FindServersOnNetwork: %w", err)
	}
	answer.skip(8) // when the counter was reset
	records := list(answer, maxApplications, minRecordBytes, decodeRecord)
	return records, answer.fault("FindServersOnNetwork")
}

// GetEndpoints returns the endpoints of the server, with its own description.
func (c *Channel) GetEndpoints() ([]Endpoint, error) {
	answer, err := c.call(getEndpointsRequestID, getEndpointsResponseID, func(e *encoder) {
		e.string(c.url)
		e.null() // locales
		e.null() // any transport profile
	})
	if err != nil {
		return nil, fmt.Errorf("GetEndpoints: %w", err)
	}
	endpoints := list(answer, maxEndpoints, minEndpointBytes, decodeEndpoint)
	return endpoints, answer.fault("GetEndpoints")
}

func decodeApplication(d *decoder) Application {
	a := Application{URI: d.string(), ProductURI: d.string(), Name: d.localizedText(), Type: ApplicationType(d.uint32())}
	d.skipString() // the gateway's URI
	d.skipString() // the discovery profile's URI
	a.DiscoveryURLs = d.strings(maxURLsPerApplication)
	return a
}

func decodeRecord(d *decoder) Record {
	d.skip(4) // the number of the record
	return Record{Name: d.string(), DiscoveryURL: d.string(), Capabilities: d.strings(maxCapabilities)}
}

func decodeEndpoint(d *decoder) Endpoint {
	e := Endpoint{URL: d.string(), Server: decodeApplication(d)}
	d.skipString() // the certificate
	e.Mode = modeName(d.uint32())
	e.Policy = d.string()
	list(d, maxTokensPerEndpoint, minTokenBytes, func(d *decoder) struct{} {
		d.skipString()
		d.skip(4)
		d.skipString()
		d.skipString()
		d.skipString()
		return struct{}{}
	})
	e.Transport = d.string()
	d.skip(1) // the security level
	return e
}

func modeName(mode uint32) string {
	switch mode {
	case 1:
		return "None"
	case 2:
		return "Sign"
	case 3:
		return "SignAndEncrypt"
	}
	return "Invalid"
}
