package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/vishvananda/netlink"
)

// bridgeName is the name of the bridge in the cluster's network namespace.
const bridgeName = "br0"

// BridgeMAC is the bridge's hardware address. Without a fixed one, a bridge takes the
// lowest address of its ports: it would change when a node is killed, and the other
// nodes would lose the API server until their neighbour entries expire.
var BridgeMAC = net.HardwareAddr{0x02, 0, 0, 0, 0, 0x01}

// Bridge adds a bridge with an address to this network namespace, and the loopback
// addresses to the loopback device.
func Bridge(address string, loopback ...string) error {
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: bridgeName, HardwareAddr: BridgeMAC}}
	if err := netlink.LinkAdd(bridge); err != nil {
		return fmt.Errorf("creating the bridge: %w", err)
	}
	if err := bringUp(bridge, address); err != nil {
		return err
	}
	if err := Loopback(loopback...); err != nil {
		return err
	}
	return forwardPackets()
}

// Loopback brings the loopback device up and adds addresses to it.
func Loopback(addresses ...string) error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("finding the loopback device: %w", err)
	}
	return bringUp(lo, addresses...)
}

// AddVeth connects a veth pair to the bridge; the other end appears as eth0 in the
// network namespace of process pid. Packets for subnet are routed through host.
func AddVeth(name string, pid int, subnet, host string) error {
	veth := &netlink.Veth{
		LinkAttrs:     netlink.LinkAttrs{Name: name},
		PeerName:      "eth0",
		PeerNamespace: netlink.NsPid(pid),
	}
	if err := netlink.LinkAdd(veth); err != nil {
		return fmt.Errorf("creating the veth pair %s: %w", name, err)
	}
	bridge, err := netlink.LinkByName(bridgeName)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetMaster(veth, bridge); err != nil {
		return fmt.Errorf("connecting %s to the bridge: %w", name, err)
	}
	if err := bringUp(veth); err != nil {
		return err
	}
	_, destination, err := net.ParseCIDR(subnet)
	if err != nil {
		return err
	}
	if err := netlink.RouteReplace(&netlink.Route{Dst: destination, Gw: net.ParseIP(host)}); err != nil {
		return fmt.Errorf("route to %s: %w", subnet, err)
	}
	return nil
}

// AwaitVethRemoval waits until the kernel has removed the veth pair of a deleted network
// namespace, so that its name can be reused. After timeout, it removes the pair itself.
func AwaitVethRemoval(name string, timeout time.Duration) error {
	for deadline := time.Now().Add(timeout); ; time.Sleep(10 * time.Millisecond) {
		link, err := netlink.LinkByName(name)
		if errors.As(err, new(netlink.LinkNotFoundError)) {
			return nil
		}
		if time.Now().After(deadline) {
			if err != nil {
				return err
			}
			return netlink.LinkDel(link)
		}
	}
}

// ConfigureVeth configures the node's end of the veth pair.
func ConfigureVeth(address, gateway string) error {
	if err := Loopback(); err != nil {
		return err
	}
	eth0, err := netlink.LinkByName("eth0")
	if err != nil {
		return fmt.Errorf("finding eth0: %w", err)
	}
	if err := bringUp(eth0, address); err != nil {
		return err
	}
	if err := netlink.RouteReplace(&netlink.Route{Gw: net.ParseIP(gateway)}); err != nil {
		return fmt.Errorf("default route through %s: %w", gateway, err)
	}
	return forwardPackets()
}

// bringUp adds addresses to an interface and brings it up.
func bringUp(link netlink.Link, addresses ...string) error {
	name := link.Attrs().Name
	for _, a := range addresses {
		parsed, err := netlink.ParseAddr(a)
		if err != nil {
			return err
		}
		if err := netlink.AddrReplace(link, parsed); err != nil {
			return fmt.Errorf("address %s on %s: %w", a, name, err)
		}
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("bringing up %s: %w", name, err)
	}
	return nil
}

// forwardPackets enables IP forwarding in this network namespace.
func forwardPackets() error {
	return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1\n"), 0o644)
}
