package details

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"akri.sh/akri/discovery/details"
)

// Bounds on scans.
const (
	maxScanTargets              = 16384
	maxScanConnections          = 500
	maxScanSeconds              = 240
	minScanIntervalSeconds      = 30
	maxScanIntervalSeconds      = 86400
	defaultScanIntervalSeconds  = 300
	defaultConnectionsPerSecond = 50
)

// Scan says which addresses to try.
type Scan struct {
	CIDRs []string `json:"cidrs"`
	Ports []int    `json:"ports"`
	// ConnectionsPerSecond is the rate of attempts, and IntervalSeconds the time between the
	// beginnings of two scans.
	ConnectionsPerSecond int `json:"connectionsPerSecond"`
	IntervalSeconds      int `json:"intervalSeconds"`

	// Networks are CIDRs, parsed, and Targets the addresses to try.
	Networks []netip.Prefix   `json:"-"`
	Targets  []netip.AddrPort `json:"-"`
}

func (s *Scan) check(path string) error {
	if s == nil {
		return nil
	}
	if s.Ports == nil {
		s.Ports = []int{defaultPort}
	}
	s.ConnectionsPerSecond = cmp.Or(s.ConnectionsPerSecond, defaultConnectionsPerSecond)
	s.IntervalSeconds = cmp.Or(s.IntervalSeconds, defaultScanIntervalSeconds)
	if len(s.CIDRs) == 0 {
		return details.Faultf(path+".cidrs", "missing").Hintf("write a list of networks, such as [10.1.2.0/24]")
	}
	for i, text := range s.CIDRs {
		place := fmt.Sprintf("%s.cidrs[%d]", path, i)
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return details.Faultf(place, "%q is not a network", text).Hintf("write one such as 10.1.2.0/24")
		}
		if network != network.Masked() {
			return details.Faultf(place, "%q has bits of a host", text).Hintf("did you mean %s?", network.Masked())
		}
		s.Networks = append(s.Networks, network)
	}
	if len(s.Ports) == 0 {
		return details.Faultf(path+".ports", "empty").Hintf("leave it out for %d", defaultPort)
	}
	for i, port := range s.Ports {
		if err := checkRange(fmt.Sprintf("%s.ports[%d]", path, i), port, 1, 65535); err != nil {
			return err
		}
		if slices.Contains(s.Ports[:i], port) {
			return details.Faultf(fmt.Sprintf("%s.ports[%d]", path, i), "repeats %d", port)
		}
	}
	if err := cmp.Or(
		checkRange(path+".connectionsPerSecond", s.ConnectionsPerSecond, 1, maxScanConnections),
		checkRange(path+".intervalSeconds", s.IntervalSeconds, minScanIntervalSeconds, maxScanIntervalSeconds),
	); err != nil {
		return err
	}
	s.setTargets()
	if len(s.Targets) > maxScanTargets {
		return details.Faultf(path, "more than %d addresses with their ports", maxScanTargets).
			Hintf("use smaller networks, fewer ports, or several Configurations")
	}
	if need := (len(s.Targets) + maxScanSeconds - 1) / maxScanSeconds; s.ConnectionsPerSecond < need {
		return details.Faultf(path+".connectionsPerSecond", "%d is too few: a scan of %d addresses with their ports would take more than %d s",
			s.ConnectionsPerSecond, len(s.Targets), maxScanSeconds).Hintf("write %d or more, or use smaller networks", need)
	}
	return nil
}

// setTargets sets the addresses to try, without the network and broadcast addresses of
// IPv4. It ends when there are too many.
func (s *Scan) setTargets() {
	for _, network := range s.Networks {
		for addr := network.Addr(); network.Contains(addr) && len(s.Targets) <= maxScanTargets; addr = addr.Next() {
			if isReserved(network, addr) {
				continue
			}
			for _, port := range s.Ports {
				s.Targets = append(s.Targets, netip.AddrPortFrom(addr, uint16(port)))
			}
		}
	}
}

// isReserved reports whether an address is the first or the last of a network of IPv4
// that has both.
func isReserved(network netip.Prefix, addr netip.Addr) bool {
	return addr.Is4() && network.Bits() < 31 && (addr == network.Addr() || !network.Contains(addr.Next()))
}
