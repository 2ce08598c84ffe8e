package opcua

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"
)

const (
	// maxNames bounds the remembered names.
	maxNames = maxRemembered
	// maxAddresses bounds the addresses of a name.
	maxAddresses = 16
	// nameTTL is how long a name is not looked up again.
	nameTTL = time.Minute
	// lookupTimeout bounds a lookup.
	lookupTimeout = 2 * time.Second
	// minMissing is how often in a row a name that was known must be missing before it
	// counts as missing: the id of a device may depend on it.
	minMissing = 3
)

// names looks up host names, and remembers the results. It is safe for concurrent use.
type names struct {
	resolver Resolver
	lookups  *share
	now      func() time.Time

	mu    sync.Mutex
	known map[string]nameAnswer
}

// nameAnswer is what is known about a name.
type nameAnswer struct {
	addresses []netip.Addr
	// isMissing is set if the name does not exist, as opposed to a failed lookup.
	isMissing bool
	missing   int // in a row
	until     time.Time
	unused    int // calls of prune since the latest use
}

func newNames(resolver Resolver, lookups *share) *names {
	return &names{resolver: resolver, lookups: lookups, now: time.Now, known: map[string]nameAnswer{}}
}

// lookup returns the addresses of a host, and whether the host does not exist. If a
// lookup fails, what was known stays valid. isFinished is false if nothing is known yet
// because ctx ended first.
func (n *names) lookup(ctx context.Context, host string) (addresses []netip.Addr, isMissing, isFinished bool) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr.Unmap()}, false, true
	}
	name := strings.TrimSuffix(strings.ToLower(host), ".")
	if name == "localhost" {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, false, true
	}
	latest, isKnown := n.recall(name)
	if !isKnown || !n.now().Before(latest.until) {
		release, err := n.lookups.acquire(ctx)
		if err != nil {
			return latest.addresses, latest.isMissing, isKnown
		}
		found, err := n.resolve(ctx, name)
		release()
		if err != nil && ctx.Err() != nil {
			return latest.addresses, latest.isMissing, isKnown
		}
		latest = latest.next(found, err)
		latest.until = n.now().Add(nameTTL)
		n.remember(name, latest)
	}
	return latest.addresses, latest.isMissing, true
}

func (n *names) resolve(ctx context.Context, name string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	return n.resolver.LookupNetIP(ctx, "ip", name)
}

// next returns what is known after a lookup.
func (a nameAnswer) next(found []netip.Addr, err error) nameAnswer {
	var dns *net.DNSError
	switch {
	case err == nil:
		latest := nameAnswer{}
		for _, addr := range found[:min(len(found), maxAddresses)] {
			latest.addresses = append(latest.addresses, addr.Unmap().WithZone(""))
		}
		return latest
	case !errors.As(err, &dns) || !dns.IsNotFound:
		return a
	}
	a.missing++
	if len(a.addresses) == 0 || a.missing >= minMissing {
		return nameAnswer{isMissing: true}
	}
	return a
}

// recall returns what is known about a name, which counts as a use.
func (n *names) recall(name string) (nameAnswer, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	known, isKnown := n.known[name]
	if isKnown {
		known.unused = 0
		n.known[name] = known
	}
	return known, isKnown
}

func (n *names) remember(name string, latest nameAnswer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, found := n.known[name]; found || len(n.known) < maxNames {
		n.known[name] = latest
	}
}

// prune forgets names that were not used in this many polls in a row.
func (n *names) prune(polls int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, each := range n.known {
		each.unused++
		n.known[name] = each
	}
	maps.DeleteFunc(n.known, func(_ string, each nameAnswer) bool { return each.unused > polls })
}
