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
	maxNames = 2000
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
}

func newNames(resolver Resolver) *names {
	return &names{resolver: resolver, now: time.Now, known: map[string]nameAnswer{}}
}

// lookup returns the addresses of a host, and whether the host does not exist. If a
// lookup fails, what was known stays valid.
func (n *names) lookup(ctx context.Context, host string) (addresses []netip.Addr, isMissing bool) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr.Unmap()}, false
	}
	name := strings.TrimSuffix(strings.ToLower(host), ".")
	if name == "localhost" {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, false
	}
	n.mu.Lock()
	former := n.known[name]
	n.mu.Unlock()
	if n.now().Before(former.until) {
		return former.addresses, former.isMissing
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	found, err := n.resolver.LookupNetIP(ctx, "ip", name)
	latest := former.next(found, err)
	latest.until = n.now().Add(nameTTL)
	n.remember(name, latest)
	return latest.addresses, latest.isMissing
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

func (n *names) remember(name string, latest nameAnswer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.known) >= maxNames {
		now := n.now()
		maps.DeleteFunc(n.known, func(_ string, each nameAnswer) bool { return now.After(each.until) })
	}
	if _, found := n.known[name]; found || len(n.known) < maxNames {
		n.known[name] = latest
	}
}
