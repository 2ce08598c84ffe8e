package opcua

import (
	"context"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"akri.sh/akri/discovery/opcua/details"
	"akri.sh/akri/internal/backoff"
)

const (
	// serviceType is the DNS-SD type of OPC UA over TCP.
	serviceType = "_opcua-tcp._tcp"
	// browseRetry is the pause before mDNS is browsed again after a failure.
	browseRetry = 10 * time.Second
	// maxFirstBrowse bounds how long mDNS delays the first list.
	maxFirstBrowse = 3 * time.Second
	// maxFirstScan bounds how long the first scan delays the first list. Agents wait for
	// five minutes.
	maxFirstScan = 270 * time.Second

	// scanTimeout bounds the connection to an address of a scan.
	scanTimeout = time.Second
	// addressPortBytes is the memory of an address of a scan.
	addressPortBytes = 32
	// maxScanPending bounds the connections that a scan waits for.
	maxScanPending = 128
)

// startFinders starts what finds targets by itself, in goroutines of the group that end
// with ctx. ready is closed when the first servers have been found.
func (s *search) startFinders(ctx context.Context, group *sync.WaitGroup) (ready <-chan struct{}) {
	var waiting sync.WaitGroup
	if s.details.Method.MDNS != nil {
		first := oneDone(&waiting)
		timer := time.AfterFunc(maxFirstBrowse, first)
		group.Go(func() {
			defer timer.Stop()
			defer first()
			s.browse(ctx, first)
		})
	}
	if scan := s.details.Method.Scan; scan != nil {
		first := oneDone(&waiting)
		timer := time.AfterFunc(maxFirstScan, first)
		group.Go(func() {
			defer timer.Stop()
			defer first()
			s.scan(ctx, scan, first)
		})
	}
	done := make(chan struct{})
	group.Go(func() {
		defer close(done)
		waiting.Wait()
	})
	return done
}

// oneDone returns a function that ends one wait, however often it is called.
func oneDone(waiting *sync.WaitGroup) func() {
	waiting.Add(1)
	return sync.OnceFunc(waiting.Done)
}

// browse adds the servers that mDNS announces.
func (s *search) browse(ctx context.Context, first func()) {
	for ctx.Err() == nil {
		err := s.handler.options.Browser.Browse(ctx, serviceType, func(services []Service) {
			s.announce(announced(services, len(s.configured), onLink))
			first()
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
func announced(services []Service, order int, isOnLink func(netip.Addr) bool) []polledTarget {
	var targets []polledTarget
	for _, service := range services {
		addresses := slices.Clone(service.Addresses)
		for i := range addresses {
			addresses[i] = addresses[i].Unmap()
		}
		addresses = slices.DeleteFunc(addresses, func(addr netip.Addr) bool { return !isOnLink(addr) })
		slices.SortFunc(addresses, netip.Addr.Compare) // IPv4 first
		if len(addresses) == 0 || service.Port == 0 {
			continue
		}
		url := details.URL{Host: addresses[0].String(), Port: service.Port}
		if path := service.TXT["path"]; strings.Trim(path, "/") != "" {
			url.Path = "/" + strings.TrimPrefix(path, "/")
		}
		if _, err := details.ParseURL(url.String()); err != nil {
			continue
		}
		targets = append(targets, polledTarget{
			method: direct, text: url.String(), url: url, order: order, addresses: withPort(addresses, service.Port),
		})
		if len(targets) >= maxFound {
			break
		}
	}
	return targets
}

// onLink reports whether an address belongs to a network of this machine's interfaces.
func onLink(addr netip.Addr) bool {
	if !addr.IsGlobalUnicast() { // also excludes link-local addresses, which need a zone
		return false
	}
	networks, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, each := range networks {
		if network, ok := each.(*net.IPNet); ok && network.Contains(addr.AsSlice()) {
			return true
		}
	}
	return false
}

// scan adds the servers that scans find, until ctx is done. first is called after the
// first scan.
func (s *search) scan(ctx context.Context, scan *details.Scan, first func()) {
	// The order is random, so that no device gets all connections at once, and nodes do
	// not follow each other.
	targets := slices.Collect(scan.Targets())
	if s.targetMemory.Add(len(targets)*addressPortBytes) != nil {
		return
	}
	for ctx.Err() == nil {
		began := time.Now()
		rand.Shuffle(len(targets), func(i, j int) { targets[i], targets[j] = targets[j], targets[i] })
		s.sweep(ctx, targets, scan.ConnectionsPerSecond)
		first()
		backoff.Sleep(ctx, max(time.Until(began.Add(scan.Interval()))-rand.N(scan.Interval()/10), minWake))
	}
}

// sweep connects to each address once and adds those where a server answers.
func (s *search) sweep(ctx context.Context, targets []netip.AddrPort, perSecond int) {
	limiter := rate.NewLimiter(rate.Limit(perSecond), 1)
	var group sync.WaitGroup
	defer group.Wait()
	slots := make(chan struct{}, maxScanPending)
	for _, address := range targets {
		url := details.URL{Host: address.Addr().String(), Port: address.Port()}
		t := polledTarget{method: direct, text: url.String(), url: url, order: len(s.configured) + 1, addresses: []netip.AddrPort{address}}
		if s.isFound(t) {
			continue // it is polled
		}
		if limiter.Wait(ctx) != nil {
			return
		}
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			if !accepts(ctx, address) {
				return
			}
			if _, err := s.ask(ctx, t, 0); err == nil { // it needs no look-ups
				s.add(t)
			}
		})
	}
}

func (s *search) isFound(t polledTarget) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, found := s.found[t.key()]
	return found
}

// accepts reports whether an address accepts a connection.
func accepts(ctx context.Context, address netip.AddrPort) bool {
	ctx, cancel := context.WithTimeout(ctx, scanTimeout)
	defer cancel()
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "tcp", address.String())
	if err != nil {
		return false
	}
	connection.Close()
	return true
}
