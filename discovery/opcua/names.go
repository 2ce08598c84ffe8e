package opcua

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"time"

	"akri.sh/akri/discovery/internal/pool"
)

const (
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
	lookups  *pool.Share
	now      func() time.Time
	known    memory[nameAnswer]
}

// nameAnswer is what is known about a name.
type nameAnswer struct {
	addresses []netip.Addr
	// isMissing is set if the name does not exist, as opposed to a failed lookup.
	isMissing bool
	missing   int // in a row
	until     time.Time
}

func (a nameAnswer) size() int { return len(a.addresses) * addressBytes }

// addressBytes is the memory of an address.
const addressBytes = 24

func newNames(resolver Resolver, lookups *pool.Share) *names {
	return &names{resolver: resolver, lookups: lookups, now: time.Now}
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
	latest, isKnown := n.known.recall(name)
	if !isKnown || !n.now().Before(latest.until) {
		release, err := n.lookups.Acquire(ctx)
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
		n.known.remember(name, latest)
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
