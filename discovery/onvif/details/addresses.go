package details

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"akri.sh/akri/discovery/details"
)

// metadata are the addresses of the clouds' metadata services, which are link-local but
// never a camera.
var metadata = []netip.Addr{netip.MustParseAddr("169.254.169.254"), netip.MustParseAddr("fd00:ec2::254")}

// CheckAddress returns an error if no camera can have an IP address. Requests to it
// would reach a service of the node itself, or of its cloud.
func CheckAddress(address netip.Addr) error {
	address = address.Unmap()
	switch {
	case !address.IsValid() || address.IsUnspecified():
		return errors.New("not an address of a host")
	case address.IsLoopback():
		return errors.New("the loopback address: it is the node itself")
	case address.IsMulticast() || address == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return errors.New("a multicast or broadcast address")
	}
	if slices.Contains(metadata, address) {
		return errors.New("the address of a cloud's metadata service")
	}
	return nil
}

// parseAddresses parses and checks the key addresses.
func (d *Details) parseAddresses() error {
	total := 0
	for i, item := range d.Addresses {
		path := fmt.Sprintf("addresses[%d]", i)
		prefix, err := parsePrefix(item)
		if err != nil {
			return details.Faultf(path, "%q is not an IP address or range", item).
				Hintf("write an address such as 10.0.0.5, or a range such as 10.0.0.0/28")
		}
		if err := CheckAddress(prefix.Addr()); err != nil {
			return details.Faultf(path, "%s is %v", prefix.Addr(), err)
		}
		if total += 1 << min(prefix.Addr().BitLen()-prefix.Bits(), 20); total > MaxAddresses {
			return details.Faultf(path, "more than %d addresses in total", MaxAddresses).
				Hintf("use smaller ranges, or several Configurations")
		}
		d.prefixes = append(d.prefixes, prefix)
	}
	return nil
}

func parsePrefix(item string) (netip.Prefix, error) {
	if strings.Contains(item, "/") {
		prefix, err := netip.ParsePrefix(item)
		return prefix.Masked(), err
	}
	address, err := netip.ParseAddr(item)
	if err != nil || address.Zone() != "" {
		return netip.Prefix{}, errors.Join(err, errors.New("an address without a zone"))
	}
	address = address.Unmap()
	return netip.PrefixFrom(address, address.BitLen()), nil
}

// Targets returns all addresses that are probed by unicast.
func (d *Details) Targets() []netip.Addr {
	var all []netip.Addr
	for _, prefix := range d.prefixes {
		for address := prefix.Addr(); address.IsValid() && prefix.Contains(address); address = address.Next() {
			if CheckAddress(address) == nil {
				all = append(all, address)
			}
		}
	}
	return all
}

// Hosts returns the addresses that are written one by one, not as ranges.
func (d *Details) Hosts() []netip.Addr {
	var all []netip.Addr
	for _, prefix := range d.prefixes {
		if prefix.IsSingleIP() {
			all = append(all, prefix.Addr())
		}
	}
	return all
}

// Lists reports whether the key addresses contains an address.
func (d *Details) Lists(address netip.Addr) bool {
	for _, prefix := range d.prefixes {
		if prefix.Contains(address.Unmap()) {
			return true
		}
	}
	return false
}
