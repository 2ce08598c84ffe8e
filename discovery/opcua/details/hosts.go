package details

import (
	"fmt"
	"net/netip"
	"strings"

	"akri.sh/akri/discovery/details"
)

// Hosts are hosts that other servers may refer to.
type Hosts struct {
	names    []string // in lower case; "*.plant.example" stands for names below it
	networks []netip.Prefix
}

// Name reports whether a name is allowed, whatever it resolves to.
func (h Hosts) Name(name string) bool {
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	for _, allowed := range h.names {
		suffix, wildcard := strings.CutPrefix(allowed, "*")
		if name == allowed || wildcard && strings.HasSuffix(name, suffix) && len(name) > len(suffix) {
			return true
		}
	}
	return false
}

// Addr reports whether an address is allowed.
func (h Hosts) Addr(addr netip.Addr) bool {
	for _, network := range h.networks {
		if network.Contains(addr.Unmap()) {
			return true
		}
	}
	return false
}

func (d *Details) checkHosts() error {
	const path = "allowHosts"
	for i, text := range d.AllowHosts {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			d.Hosts.networks = append(d.Hosts.networks, prefix.Masked())
			continue
		}
		if addr, err := netip.ParseAddr(text); err == nil {
			d.Hosts.networks = append(d.Hosts.networks, netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()))
			continue
		}
		name := strings.ToLower(text)
		if !validHost(strings.TrimPrefix(name, "*.")) {
			return details.Faultf(fmt.Sprintf("%s[%d]", path, i), "%q is not a host", text).
				Hintf("write an IP address, a CIDR, a name, or a name such as *.plant.example")
		}
		d.Hosts.names = append(d.Hosts.names, strings.TrimSuffix(name, "."))
	}
	return nil
}
