package opcua

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"akri.sh/akri/discovery/mdns/browse"
	"akri.sh/akri/discovery/opcua/details"
	"akri.sh/akri/internal/backoff"
)

const (
	// serviceType is the DNS-SD type of OPC UA over TCP.
	serviceType = "_opcua-tcp._tcp"
	// browseRetry is the pause before mDNS is browsed again after a failure.
	browseRetry = 10 * time.Second
	// maxScanPending bounds the connections that a scan waits for at the same time. They are
	// not part of maxRequestCalls, so that silent addresses do not delay polls.
	maxScanPending = 256
)

// browse adds the servers that mDNS announces. first is called after the first list: an
// error is none.
func (s *search) browse(ctx context.Context, first func()) {
	for ctx.Err() == nil {
		query := browse.Query{Types: []string{serviceType}}
		err := s.handler.options.Browser.Browse(ctx, query, func(services []browse.Service) error {
			s.announce(ctx, announced(services, s.configured))
			first()
			return nil
		})
		if ctx.Err() != nil {
			return
		}
		s.handler.options.Metrics.Failed(reasonBrowse)
		s.handler.options.Log.Warn("Could not browse by mDNS; trying again", "err", err)
		backoff.Sleep(ctx, browseRetry)
	}
}

// announced returns the targets of services. Their URLs have an address instead of the
// name, which Pods cannot look up. Anybody on the network can announce anything, so only
// addresses of the network itself are used.
func announced(services []browse.Service, order int) []*target {
	var targets []*target
	for _, service := range services {
		addresses := service.Addresses[:min(service.OnLink, maxAddresses)]
		if len(addresses) == 0 || service.Port == 0 {
			continue
		}
		url := details.URL{Host: addresses[0].String(), Port: service.Port}
		if path, _ := service.Text("path"); strings.Trim(path, "/") != "" {
			url.Path = "/" + strings.TrimPrefix(path, "/")
		}
		if _, err := details.ParseURL(url.String()); err != nil {
			continue
		}
		targets = append(targets, &target{
			method: direct, text: url.String(), url: url, order: order, addresses: withPort(addresses, service.Port),
		})
	}
	return targets
}

// scan adds the servers that scans find, until ctx is done. first is called after the
// first scan.
func (s *search) scan(ctx context.Context, first func()) {
	scan := s.details.Method.Scan
	addresses := scan.Targets
	for ctx.Err() == nil {
		began := time.Now()
		// The order is random, so that no device gets all connections at once, and nodes do
		// not follow each other.
		rand.Shuffle(len(addresses), func(i, j int) { addresses[i], addresses[j] = addresses[j], addresses[i] })
		s.sweep(ctx, addresses, scan.ConnectionsPerSecond)
		first()
		backoff.Sleep(ctx, max(time.Until(began.Add(scan.Interval()))-rand.N(scan.Interval()/10), minPause))
	}
}

// sweep connects to each address once and adds those where a server answers.
func (s *search) sweep(ctx context.Context, addresses []netip.AddrPort, perSecond int) {
	limiter := rate.NewLimiter(rate.Limit(perSecond), 1)
	var group errgroup.Group
	group.SetLimit(maxScanPending)
	for _, address := range addresses {
		url := details.URL{Host: address.Addr().String(), Port: address.Port()}
		t := &target{method: direct, text: url.String(), url: url, order: s.configured + 1, addresses: []netip.AddrPort{address}}
		if limiter.Wait(ctx) != nil {
			break
		}
		group.Go(func() error {
			if _, err := s.describe(ctx, t.addresses, t.text); err != nil {
				return nil // there is no server
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if !s.admit(ctx, t) {
				s.handler.options.Metrics.Failed(reasonTooMany)
			}
			return nil
		})
	}
	_ = group.Wait() // no address is an error
}
