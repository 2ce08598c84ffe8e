package onvif

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/handlertest"
	"akri.sh/akri/discovery/onvif/details"
	"akri.sh/akri/internal/fulltest"
)

const (
	// namespaceVariable marks the process that runs the tests of this file, in its own
	// network namespace.
	namespaceVariable = "AKRI_ONVIF_NAMESPACE"
	// requiredVariable makes a skipped test a failure.
	requiredVariable = "AKRI_TEST_REQUIRED"
)

// TestInNamespace runs the tests TestReal… in a process with its own network. There, all
// addresses in 10.78.0.0/16 are those of the namespace itself, and v0 is in that subnet. The
// cameras also get what is sent on the other links, as on a node with interfaces of Pods.
func TestInNamespace(t *testing.T) {
	fulltest.Only(t)
	const network = `set -e
ip link set lo up
ip link add v0 type veth peer name v1
ip addr add 10.78.0.1/16 dev v0
ip link set v0 up
ip link set v1 up
ip route add local 10.78.0.0/16 dev lo
ip route add local 10.81.0.0/16 dev lo
ip addr add fd00:78::30/64 dev lo nodad
for n in 1 2 3 4 5 6 7; do
  ip link add a$n type veth peer name b$n
  ip addr add 10.79.$n.1/24 dev a$n
  ip link set a$n up
  ip link set b$n up
done
ip link add pod type veth peer name podend
ip addr add 10.80.0.1/32 dev pod
ip link set pod up
ip link set podend up
exec "$0" "$@"`
	command := exec.CommandContext(t.Context(), "sh", "-c", network, os.Args[0], "-test.run=^TestReal", "-test.v", "-test.timeout=3m")
	command.Env = append(os.Environ(), namespaceVariable+"=1")
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	output, err := command.CombinedOutput()
	if errors.Is(err, syscall.EPERM) && os.Getenv(requiredVariable) != "1" {
		t.Skip("cannot create a network namespace: run the test as root")
	}
	if err != nil || !strings.Contains(string(output), "--- PASS: TestReal") {
		t.Fatalf("%v\n%s", err, output)
	}
}

// inNamespace skips a test outside of the namespace.
func inNamespace(t testing.TB) {
	t.Helper()
	if os.Getenv(namespaceVariable) == "" {
		t.Skip("runs as part of TestInNamespace")
	}
}

// host returns an address of the namespace.
func host(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 78, byte(n >> 8), byte(n)}) }

const quick = "{discoveryTimeoutSeconds: 1, intervalSeconds: 1, misses: 2}"

// TestRealAppearsAndDisappears follows cameras over the real sockets. One is in a subnet that no
// interface has.
func TestRealAppearsAndDisappears(t *testing.T) {
	inNamespace(t)
	f := newFakeNetwork(t)
	first := f.plug(newFakeCamera(host(10), "a-1"))
	f.plug(newFakeCamera(netip.MustParseAddr("10.81.0.5"), "of another subnet"))
	call := handlertest.Open(t, Handler{}, discovery.Request{Details: quick})
	id := func(n int, uuid string) string {
		return fmt.Sprintf("http://10.78.0.%d/onvif/device_service-%s", n, uuid)
	}
	device := call.UntilIDs(id(10, "a-1"))[0]
	want := map[string]string{
		PropertyServiceURL: "http://10.78.0.10/onvif/device_service", PropertyUUID: "a-1",
		PropertyIPAddress: "10.78.0.10", PropertyMACAddress: "02:00:00:00:00:0a", discovery.DisplayName: "fake at 10.78.0.10",
	}
	if !maps.Equal(device.Properties, want) {
		t.Errorf("got %+v", device)
	}
	second := f.plug(newFakeCamera(host(11), "b"))
	call.UntilIDs(id(10, "a-1"), id(11, "b"))
	third := f.plug(newFakeCamera(host(12), "c"))
	call.UntilIDs(id(10, "a-1"), id(11, "b"), id(12, "c"))
	f.say("Bye", third, netip.AddrPortFrom(group, port)) // forged: it is still there
	f.unplug(second, true)
	call.UntilIDs(id(10, "a-1"), id(12, "c"))
	f.unplug(first, false)
	call.UntilIDs(id(12, "c"))
}

// TestRealAddressesOfIPv6 probes a listed address of IPv6, and hears its answer.
func TestRealAddressesOfIPv6(t *testing.T) {
	inNamespace(t)
	camera, err := net.ListenUDP("udp6", &net.UDPAddr{IP: net.ParseIP("fd00:78::30"), Port: port})
	if err != nil {
		t.Fatal(err)
	}
	defer camera.Close()
	settings, err := details.Parse("addresses: ['fd00:78::30']")
	if err != nil {
		t.Fatal(err)
	}
	s := newSockets(settings, silent(func(reason string) { t.Error(reason) }))
	defer s.close()
	s.sweep(t.Context())
	buffer := make([]byte, maxMessageBytes)
	n, from, err := camera.ReadFromUDPAddrPort(buffer)
	if err != nil || !strings.Contains(string(buffer[:n]), "Probe") {
		t.Fatalf("the probe is %q, %v", buffer[:n], err)
	}
	const answer = "<Envelope><Body><ProbeMatch><EndpointReference><Address>a</Address></EndpointReference></ProbeMatch></Body></Envelope>"
	if _, err := camera.WriteToUDPAddrPort([]byte(answer), from); err != nil {
		t.Fatal(err)
	}
	select {
	case m := <-s.heard():
		if m.from != netip.MustParseAddr("fd00:78::30") || m.UUID != "a" {
			t.Errorf("heard %+v", m)
		}
	case <-time.After(5 * time.Second):
		t.Error("the answer is not heard")
	}
}

// TestRealLinks looks for the links that are probed: not the node's end of a Pod's interface,
// unless it is named or cameras may be elsewhere.
func TestRealLinks(t *testing.T) {
	inNamespace(t)
	usual := []string{"a1", "a2", "a3", "a4", "a5", "a6", "a7", "v0"}
	for _, test := range []struct {
		settings details.Details
		want     []string
	}{
		{details.Details{}, usual},
		{details.Details{AllowForeignXAddrs: true}, []string{"a1", "a2", "a3", "a4", "a5", "a6", "a7", "pod", "v0"}},
		{details.Details{Interfaces: []string{"pod", "a2"}}, []string{"a2", "pod"}},
	} {
		found, err := findLinks(&test.settings)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, l := range found {
			names = append(names, l.name)
		}
		slices.Sort(names)
		if !slices.Equal(names, test.want) {
			t.Errorf("with %+v, the links are %q, want %q", test.settings, names, test.want)
		}
	}
}

// TestRealPortIsShared has another program on the port, such as one that announces the node
// to computers. It must get the unicast messages that are for it.
func TestRealPortIsShared(t *testing.T) {
	inNamespace(t)
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1) })
	}}
	other, err := config.ListenPacket(t.Context(), "udp4", netip.AddrPortFrom(netip.IPv4Unspecified(), port).String())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	f := newFakeNetwork(t)
	f.plug(newFakeCamera(host(35), "c"))
	handlertest.Open(t, Handler{}, discovery.Request{Details: quick}).UntilIDs("http://10.78.0.35/onvif/device_service-c")
	f.say("Hello", newFakeCamera(host(35), "for-the-other"), netip.AddrPortFrom(host(36), port))
	if err := other.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, maxMessageBytes)
	for {
		n, _, err := other.ReadFrom(buffer) // messages to the group arrive too
		if err != nil {
			t.Fatalf("the other program does not get it: %v", err)
		}
		if strings.Contains(string(buffer[:n]), "for-the-other") {
			return
		}
	}
}
