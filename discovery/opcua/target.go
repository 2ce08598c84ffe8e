package opcua

import (
	"context"
	"net/netip"
	"sync"

	"akri.sh/akri/discovery/opcua/details"
	"akri.sh/akri/discovery/opcua/uatcp"
)

// method is how a target is asked.
type method string

const (
	standard method = "standard" // FindServers
	network  method = "network"  // FindServersOnNetwork
	direct   method = "direct"   // the server itself, found by mDNS or a scan
)

// polledTarget is a server that is asked in each poll.
type polledTarget struct {
	method method
	text   string
	url    details.URL
	// addresses replace the URL's host, if there are any.
	addresses []netip.AddrPort
	order     int
}

// key identifies a target.
func (t polledTarget) key() string { return string(t.method) + " " + t.text }

// ask returns the applications that a target reports.
func (s *search) ask(ctx context.Context, t polledTarget) ([]application, error) {
	addresses := textOf(t.addresses)
	if len(addresses) == 0 {
		addresses = []string{t.url.Address()}
	}
	switch t.method {
	case network:
		return s.askNetwork(ctx, t, addresses)
	case direct:
		return s.askServer(ctx, t, addresses)
	default:
		return s.askStandard(ctx, t, addresses)
	}
}

// askStandard asks for the applications that a server knows.
func (s *search) askStandard(ctx context.Context, t polledTarget, addresses []string) ([]application, error) {
	var reported []uatcp.Application
	from := origin{text: t.text, url: t.url}
	err := s.handler.call(ctx, addresses, t.text, func(channel *uatcp.Channel, answering netip.Addr) (err error) {
		from.address = answering
		reported, err = channel.FindServers()
		return err
	})
	if err != nil {
		return nil, err
	}
	found := make([]application, len(reported))
	parallel(len(reported), func(i int) {
		a := &found[i]
		a.describe(reported[i])
		if s.mayPass(*a) {
			s.locate(ctx, from, reported[i].DiscoveryURLs, a)
		}
	})
	return located(found), nil
}

// askNetwork asks for the servers that a discovery server has found, and those that the
// handler may connect to for their descriptions.
func (s *search) askNetwork(ctx context.Context, t polledTarget, addresses []string) ([]application, error) {
	var records []uatcp.Record
	from := origin{text: t.text, url: t.url}
	err := s.handler.call(ctx, addresses, t.text, func(channel *uatcp.Channel, answering netip.Addr) (err error) {
		from.address = answering
		records, err = channel.FindServersOnNetwork()
		return err
	})
	if err != nil {
		return nil, err
	}
	found := make([]application, len(records))
	parallel(len(records), func(i int) {
		found[i].name = clean(records[i].Name)
		s.locate(ctx, from, []string{records[i].DiscoveryURL}, &found[i])
	})
	return located(found), nil
}

// askServer asks a server for its own description. Its URL is the address at which it
// was found, with the path that it reports.
func (s *search) askServer(ctx context.Context, t polledTarget, addresses []string) ([]application, error) {
	described, err := s.handler.describe(ctx, addresses, t.text)
	if err != nil {
		return nil, err
	}
	a := application{url: t.text, addresses: t.addresses, endpoints: described.endpoints}
	a.describe(described.server)
	for _, text := range described.server.DiscoveryURLs {
		if reported, err := details.ParseURL(text); err == nil && reported.Port == t.url.Port && t.url.Path == "" {
			reported.Host = t.url.Host
			a.url = reported.String()
			break
		}
	}
	return []application{a}, nil
}

// mayPass reports whether an application can pass the filters. Others are not looked up.
func (s *search) mayPass(a application) bool { return admits(s.details, a) }

// locate sets the URL, the addresses and the endpoints of an application that a server
// refers to. The URL stays empty if there is none with the scheme opc.tcp.
func (s *search) locate(ctx context.Context, from origin, urls []string, a *application) {
	text, chosen, ok := choose(from, urls)
	if !ok {
		return
	}
	addresses, isMissing := s.names.lookup(ctx, chosen.Host)
	if needsRelocation(from, chosen, isMissing) {
		text, chosen = relocate(from, chosen)
		addresses = []netip.Addr{from.address}
	}
	a.url, a.addresses = text, withPort(addresses, chosen.Port)
	permitted := reachable(from, chosen, addresses, s.details.Hosts)
	if len(permitted) == 0 {
		return
	}
	described, ok := s.descriptions.get(ctx, text, func(ctx context.Context) (description, error) {
		return s.handler.describe(ctx, textOf(permitted), text)
	})
	if !ok {
		return
	}
	a.endpoints = described.endpoints
	if !a.isKindKnown {
		a.describe(described.server)
	}
}

// located returns the applications with URLs.
func located(found []application) []application {
	kept := found[:0]
	for _, a := range found {
		if a.url != "" {
			kept = append(kept, a)
		}
	}
	return kept
}

// parallel calls do for 0 to count-1, maxCalls at a time, and returns after all.
func parallel(count int, do func(i int)) {
	var group sync.WaitGroup
	slots := make(chan struct{}, maxCalls)
	for i := range count {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			do(i)
		})
	}
	group.Wait()
}
