package opcua

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/mdns/browse"
	"akri.sh/akri/discovery/monitor"
	"akri.sh/akri/discovery/opcua/details"
)

// Name is the handler's name in Configurations.
const Name = "opcua"

// The properties of devices. The first is Akri's; the others are left out if they are
// unknown.
const (
	PropertyURL             = "OPCUA_DISCOVERY_URL"
	PropertyApplicationName = "OPCUA_APPLICATION_NAME"
	PropertyApplicationURI  = "OPCUA_APPLICATION_URI"
	PropertyProductURI      = "OPCUA_PRODUCT_URI"
	PropertyEndpoints       = "OPCUA_ENDPOINTS"
)

const (
	// maxCalls bounds the calls of servers and the look-ups of names at a time, over all
	// requests. Most wait for a server that is silent, which costs little.
	maxCalls = 512
	// callTimeout bounds a call with its connection.
	callTimeout = 4 * time.Second
	// connectTimeout bounds the connection.
	connectTimeout = 2 * time.Second
)

// Browser finds services by mDNS. *browse.Browser is one.
type Browser interface {
	Browse(ctx context.Context, query browse.Query, changed func([]browse.Service) error) error
}

// Resolver looks up the addresses of a host. *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Options configure a Handler. The zero value is valid.
type Options struct {
	// Metrics counts scans and failures.
	Metrics *monitor.Metrics
	// Log receives servers that begin or cease to answer.
	Log *slog.Logger
	// Browser is used by the method mdns. Without it, that method is refused.
	Browser Browser
	// ScanNetworks are the networks that the method scan may scan. Without them, it is
	// refused.
	ScanNetworks []netip.Prefix
	// Resolver is the resolver of host names; by default, Go's.
	Resolver Resolver
}

// Handler discovers OPC UA servers.
type Handler struct {
	options Options
	calls   *semaphore.Weighted // of maxCalls
}

var _ discovery.Handler = (*Handler)(nil)

// New returns a handler.
func New(options Options) *Handler {
	options.Log = cmp.Or(options.Log, slog.Default())
	if options.Resolver == nil {
		options.Resolver = net.DefaultResolver
	}
	return &Handler{options: options, calls: semaphore.NewWeighted(maxCalls)}
}

// Discover implements [discovery.Handler].
func (h *Handler) Discover(ctx context.Context, request discovery.Request, send func([]discovery.Device) error) error {
	d, err := details.Parse(request.Details)
	if err != nil {
		return discovery.Invalid("discoveryDetails of opcua: %w", err)
	}
	if err := h.permits(d); err != nil {
		return err
	}
	return newSearch(h, d).run(ctx, send)
}

// permits returns an error if a method needs what this handler was not given.
func (h *Handler) permits(d *details.Details) error {
	const path = "discoveryDetails of opcua: opcuaDiscoveryMethod"
	if d.Method.MDNS != nil && h.options.Browser == nil {
		return discovery.Invalid("%s.mdns: this handler does not browse by mDNS; use another method", path)
	}
	if d.Method.Scan == nil {
		return nil
	}
	for i, network := range d.Method.Scan.Networks {
		if !slices.ContainsFunc(h.options.ScanNetworks, func(permitted netip.Prefix) bool {
			return permitted.Bits() <= network.Bits() && permitted.Contains(network.Addr())
		}) {
			return discovery.Invalid("%s.scan.cidrs[%d]: this handler may not scan %s; "+
				"start it with --scan-networks=%[3]s, or use another method", path, i, network)
		}
	}
	return nil
}
