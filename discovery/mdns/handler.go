package mdns

import (
	"context"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/mdns/browse"
	"akri.sh/akri/discovery/mdns/details"
)

// Name is the handler's name in Configurations.
const Name = "mdns"

// Handler finds the services that a Configuration requests. Create it with [New].
type Handler struct{ browser *browse.Browser }

var _ discovery.Handler = (*Handler)(nil)

// New returns a Handler. All Configurations share the browser, and so its questions.
func New(browser *browse.Browser) *Handler { return &Handler{browser} }

// Discover implements [discovery.Handler].
func (h *Handler) Discover(ctx context.Context, request discovery.Request, send func([]discovery.Device) error) error {
	d, err := details.Parse(request.Details)
	if err != nil {
		return discovery.Invalid("discoveryDetails of mdns: %w", err)
	}
	return h.browser.Browse(ctx, queryOf(d), func(services []browse.Service) error {
		devices := []discovery.Device{}
		for _, s := range services {
			if d.Admits(s.Instance, s.Host, s.Text) {
				devices = append(devices, device(s))
			}
		}
		return send(devices)
	})
}

func queryOf(d details.Details) browse.Query {
	return browse.Query{
		Types: d.Services, Domain: d.Domain,
		Interfaces: func(i browse.Interface) bool { return d.UsesInterface(i.Name, i.Default()) },
	}
}
