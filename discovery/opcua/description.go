package opcua

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"akri.sh/akri/discovery/opcua/details"
	"akri.sh/akri/discovery/opcua/uatcp"
)

const (
	// describeInterval is the interval between requests for the endpoints of a server that
	// a discovery server lists. They rarely change.
	describeInterval = 5 * time.Minute
	// describeRetry is how soon that is tried again after a failure.
	describeRetry = time.Minute
)

// description is what a server reports about itself.
type description struct {
	server    uatcp.Application
	endpoints string
}

// describe asks a server for its description and endpoints.
func (s *search) describe(ctx context.Context, addresses []string, url string) (description, error) {
	var d description
	err := s.call(ctx, addresses, url, func(channel *uatcp.Channel, _ netip.Addr) error {
		endpoints, err := channel.GetEndpoints()
		if err != nil {
			return err
		}
		if len(endpoints) > 0 {
			d = description{endpoints[0].Server, summarize(endpoints)}
			return nil
		}
		// Some servers have endpoints only for the exact URL that they know.
		servers, err := channel.FindServers()
		if err != nil {
			return err
		}
		if len(servers) != 1 {
			return fmt.Errorf("%w: no endpoint, and %d servers", uatcp.ErrMalformed, len(servers))
		}
		d.server = servers[0]
		return nil
	})
	if err == nil && d.endpoints == "" && len(d.server.DiscoveryURLs) > 0 {
		d.endpoints = s.endpoints(ctx, addresses, d.server.DiscoveryURLs)
	}
	if err == nil {
		err = ctx.Err() // the endpoints may be missing because of that
	}
	return d, err
}

// endpoints asks a server, at the addresses where it was found, for the endpoints of the
// first URL that it knows.
func (s *search) endpoints(ctx context.Context, addresses, urls []string) string {
	for _, url := range urls {
		if _, err := details.ParseURL(url); err != nil {
			continue
		}
		var summary string
		err := s.call(ctx, addresses, url, func(channel *uatcp.Channel, _ netip.Addr) error {
			endpoints, err := channel.GetEndpoints()
			summary = summarize(endpoints)
			return err
		})
		if err != nil && ctx.Err() == nil {
			s.handler.options.Metrics.Failed(reason(err))
		}
		return summary
	}
	return ""
}

// descriptions remembers the descriptions of servers. It is safe for concurrent use.
type descriptions struct {
	failed func(error)
	known  memory[descriptionAnswer]
}

// descriptionAnswer is what is known about a server.
type descriptionAnswer struct {
	description
	ok   bool // a description is known
	next time.Time
}

func (a descriptionAnswer) size() int {
	return len(a.endpoints) + len(a.server.URI) + len(a.server.ProductURI) + len(a.server.Name)
}

// get returns the description of a server, which is asked if the known one is old. If it
// does not answer, the known one stays valid. isFinished is false if nothing is known yet
// because ctx ended first.
func (d *descriptions) get(
	ctx context.Context, url string, ask func(context.Context) (description, error),
) (_ description, ok, isFinished bool) {
	known, isKnown := d.known.recall(url)
	if time.Now().After(known.next) && ctx.Err() == nil {
		latest, err := ask(ctx)
		switch {
		case err == nil:
			latest.server.DiscoveryURLs = nil // not needed any longer
			known.description, known.ok, isKnown = latest, true, true
			known.next = time.Now().Add(describeInterval - rand.N(describeInterval/5))
		case ctx.Err() == nil:
			d.failed(err)
			known.next, isKnown = time.Now().Add(describeRetry-rand.N(describeRetry/5)), true
		}
	}
	if isKnown {
		d.known.remember(url, known)
	}
	return known.description, known.ok, isKnown
}
