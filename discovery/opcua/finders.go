package opcua

import (
	"context"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
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
		url, err := details.ParseReported(url.String())
		if err != nil {
			continue
		}
		targets = append(targets, &target{
			method: direct, candidate: candidate{url.String(), url}, order: order, addresses: withPort(addresses, service.Port),
		})
	}
	return targets
}

// onLink returns a function that reports whether an address belongs to a network of this
// machine's interfaces.
func onLink() func(netip.Addr) bool {
	networks, _ := net.InterfaceAddrs() // without them, no address does
	return func(addr netip.Addr) bool {
		// Link-local addresses, which need a zone, are excluded as well.
		return addr.IsGlobalUnicast() && slices.ContainsFunc(networks, func(each net.Addr) bool {
			network, ok := each.(*net.IPNet)
			return ok && network.Contains(addr.AsSlice())
		})
	}
}

// scan adds the servers that answer at an address of the details, until ctx is done. first is
// called after the first scan.
func (s *search) scan(ctx context.Context, first func()) {
	scan := s.details.Method.Scan
	interval := time.Duration(scan.IntervalSeconds) * time.Second
	limiter := rate.NewLimiter(rate.Limit(scan.ConnectionsPerSecond), 1)
	for ctx.Err() == nil {
		began := time.Now()
		var group errgroup.Group
		group.SetLimit(maxScanPending)
		// The order is random, so that no device gets all connections at once, and nodes do
		// not follow each other.
		for _, i := range rand.Perm(len(scan.Targets)) {
			address := scan.Targets[i]
			url := details.URL{Host: address.Addr().String(), Port: address.Port()}
			t := &target{method: direct, candidate: candidate{url.String(), url}, order: s.configured + 1, addresses: scan.Targets[i : i+1]}
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
		first()
		backoff.Sleep(ctx, max(time.Until(began.Add(interval))-rand.N(interval/10), minPause))
	}
}
