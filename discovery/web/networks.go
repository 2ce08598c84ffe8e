package web

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
)

// Networks are the operator's rules about the addresses that the handler may connect to:
// authors of Configurations choose the URLs.
type Networks struct {
	// Allow lists what is allowed; empty: everything.
	Allow []netip.Prefix
	// Deny lists what is denied even if it is allowed.
	Deny []netip.Prefix
}

// DefaultDeny are loopback and link-local addresses, and those of the metadata services of
// clouds that are not link-local: AWS and Google Cloud with IPv6, Azure, Alibaba and Oracle.
var DefaultDeny = []string{
	"0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "::/128", "::1/128", "fe80::/10",
	"fd00:ec2::254/128", "fd20:ce::254/128", "168.63.129.16/32", "100.100.100.200/32", "192.0.0.192/32",
}

// Check returns an error if an address is not allowed.
func (n Networks) Check(address netip.Addr) error {
	address = address.Unmap().WithZone("")
	contains := func(prefix netip.Prefix) bool { return prefix.Contains(address) }
	if slices.ContainsFunc(n.Deny, contains) {
		return fmt.Errorf("the operator's --deny-networks of the handler denies connections to %s", address)
	}
	if len(n.Allow) > 0 && !slices.ContainsFunc(n.Allow, contains) {
		return fmt.Errorf("the operator's --allow-networks of the handler does not include %s", address)
	}
	return nil
}

// control is the hook of a dialer: it sees the address after names have been resolved.
func (n Networks) control(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	parsed, err := netip.ParseAddr(host)
	if err != nil {
		return fmt.Errorf("address %q: %w", host, err)
	}
	return n.Check(parsed)
}
