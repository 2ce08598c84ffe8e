package onvif

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"akri.sh/akri/discovery"
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
	for line := range strings.Lines(string(output)) {
		if strings.Contains(line, "measured") {
			t.Log(strings.TrimSpace(line))
		}
	}
}

// inNamespace skips a test outside of the namespace.
func inNamespace(t testing.TB) {
	t.Helper()
	if os.Getenv(namespaceVariable) == "" {
		t.Skip("runs as part of TestInNamespace")
	}
}

// discovering is a call of Discover.
type discovering struct {
	t     testing.TB
	lists chan []discovery.Device
	last  []discovery.Device
	stop  func()
}

func discover(t testing.TB, text string, properties map[string]string) *discovering {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	d := &discovering{t: t, lists: make(chan []discovery.Device, 1000)}
	ended := make(chan error, 1)
	go func() {
		ended <- Handler{}.Discover(ctx, discovery.Request{Details: text, Properties: propertiesOf(properties)},
			func(devices []discovery.Device) error { d.lists <- devices; return nil })
	}()
	d.stop = func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Discover ended by %v", err)
		}
		ended <- context.Canceled
	}
	t.Cleanup(d.stop)
	return d
}

// await waits for a list with this many devices.
func (d *discovering) await(count int, within time.Duration) []discovery.Device {
	d.t.Helper()
	deadline := time.After(within)
	for {
		select {
		case d.last = <-d.lists:
			if len(d.last) == count {
				return d.last
			}
		case <-deadline:
			d.t.Fatalf("%d devices after %v, want %d", len(d.last), within, count)
		}
	}
}

// host returns an address of the namespace.
func host(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 78, byte(n >> 8), byte(n)}) }

const quick = "{discoveryTimeoutSeconds: 1, intervalSeconds: 1, misses: 2}"

func TestRealAppearsAndDisappears(t *testing.T) {
	inNamespace(t)
	f := newFakeNetwork(t)
	first := f.plug(&fakeCamera{host: host(10), uuid: "A-1"})
	d := discover(t, quick, nil)
	devices := d.await(1, 10*time.Second)
	want := map[string]string{
		PropertyServiceURL: "http://10.78.0.10/onvif/device_service", PropertyUUID: "a-1",
		PropertyIPAddress: "10.78.0.10", PropertyMACAddress: "02:00:00:00:00:0a",
	}
	if devices[0].ID != "http://10.78.0.10/onvif/device_service-a-1" || fmt.Sprint(devices[0].Properties) != fmt.Sprint(want) {
		t.Errorf("got %+v", devices[0])
	}
	time.Sleep(minSendPause) // since the first list, so that the next one is not delayed
	began := time.Now()
	second := f.plug(&fakeCamera{host: host(11), uuid: "b"})
	d.await(2, 10*time.Second)
	t.Logf("measured: Hello to list %v", time.Since(began))
	third := f.plug(&fakeCamera{host: host(12), uuid: "c"})
	d.await(3, 10*time.Second)
	f.say("Bye", third, netip.AddrPortFrom(group, port)) // forged: it is still there
	began = time.Now()
	f.unplug(second, true)
	d.await(2, 10*time.Second)
	t.Logf("measured: Bye to list %v", time.Since(began))
	began = time.Now()
	f.unplug(first, false)
	if remaining := d.await(1, 30*time.Second); remaining[0].Properties[PropertyUUID] != "c" {
		t.Errorf("the camera with the forged Bye is gone: %v", remaining)
	}
	t.Logf("measured: killed to list %v, with two probes of 1 s", time.Since(began))
}

func TestRealCredentials(t *testing.T) {
	inNamespace(t)
	f := newFakeNetwork(t)
	own := f.plug(&fakeCamera{host: host(10), uuid: "own", username: "u1", password: "secret-1", clock: -26 * time.Hour,
		stream: "rtsp://u1:secret-1@10.78.0.10:554/live?a=1&amp;b=2"})
	byDefault := f.plug(&fakeCamera{host: host(11), uuid: "other", username: "u2", password: "secret-2", httpDigest: true,
		stream: "rtsp://10.78.0.11:554/user=u2_password=secret-2"})
	wrong := f.plug(&fakeCamera{host: host(12), uuid: "wrong", username: "u3", password: "secret-3", stream: "rtsp://10.78.0.12/"})
	elsewhere := f.plug(&fakeCamera{host: host(14), uuid: "elsewhere", media: "http://10.78.0.15/onvif/media", stream: "rtsp://10.78.0.15/"})
	victim := f.plug(&fakeCamera{host: host(15), uuid: "victim", xaddr: "ftp://10.78.0.15/"})
	d := discover(t, "{discoveryTimeoutSeconds: 1, details: [information, streams]}", map[string]string{
		"username_own": "u1", "password_own": "secret-1", "username_default": "u2", "password_default": "secret-2",
	})
	devices := d.await(4, 10*time.Second)
	for i, expect := range []struct {
		camera        *fakeCamera
		stream, model string
	}{
		{own, "rtsp://10.78.0.10:554/live?a=1&b=2", "One<1>"},
		{byDefault, "", "One<1>"},
		{wrong, "", ""},
		{elsewhere, "", "One<1>"},
	} {
		p := devices[i].Properties
		if p[PropertyUUID] != expect.camera.uuid || p[PropertyStreamURI] != expect.stream || p[PropertyModel] != expect.model {
			t.Errorf("%s: got %v", expect.camera.uuid, p)
		}
		if len(p[PropertySerialNumber]) > maxPropertyBytes {
			t.Errorf("%s: a serial number of %d bytes", expect.camera.uuid, len(p[PropertySerialNumber]))
		}
		if text := fmt.Sprint(p); strings.Contains(text, "secret") {
			t.Errorf("%s: a secret in %s", expect.camera.uuid, text)
		}
		if p[PropertyIPAddress] != expect.camera.host.String() {
			t.Errorf("%s: the address is %s", expect.camera.uuid, p[PropertyIPAddress])
		}
	}
	if devices[0].Properties[PropertySnapshotURI] != "http://10.78.0.10/snapshot.jpg?id=1" {
		t.Errorf("the snapshot is %q", devices[0].Properties[PropertySnapshotURI])
	}
	if wrong.refused.Load() != 1 {
		t.Errorf("wrong credentials were sent %d times, want once", wrong.refused.Load())
	}
	if victim.requests.Load() > 0 {
		t.Errorf("%d requests to a host in another camera's answers", victim.requests.Load())
	}
}

func TestRealForeignXAddr(t *testing.T) {
	inNamespace(t)
	f := newFakeNetwork(t)
	victim := f.plug(&fakeCamera{host: host(20), uuid: "victim", xaddr: "ftp://10.78.0.20/"})
	f.plug(&fakeCamera{host: host(21), uuid: "rogue", xaddr: "http://10.78.0.20/onvif/device_service"})
	f.plug(&fakeCamera{host: host(22), uuid: "honest"})
	f.plug(&fakeCamera{host: netip.MustParseAddr("10.81.0.5"), uuid: "of another subnet"})
	credentials := map[string]string{"username_default": "u", "password_default": "p"}
	d := discover(t, "discoveryTimeoutSeconds: 1", credentials)
	if devices := d.await(1, 10*time.Second); devices[0].Properties[PropertyUUID] != "honest" || victim.requests.Load() > 0 {
		t.Errorf("got %v, and %d requests to another host", devices, victim.requests.Load())
	}
	d.stop()
	d = discover(t, "{discoveryTimeoutSeconds: 1, allowForeignXAddrs: true}", credentials)
	d.await(3, 10*time.Second)
}

// TestRealAddresses finds cameras without multicast. The interface that is named does not
// exist.
func TestRealAddresses(t *testing.T) {
	inNamespace(t)
	f := newFakeNetwork(t)
	f.plug(&fakeCamera{host: host(30), uuid: "c"})
	d := discover(t, "{discoveryTimeoutSeconds: 1, intervalSeconds: 1, misses: 1, interfaces: [none],"+
		" addresses: [10.78.0.30, 10.78.0.31]}", nil)
	if devices := d.await(1, 10*time.Second); devices[0].ID != "http://10.78.0.30/onvif/device_service-c" {
		t.Errorf("got %v", devices[0])
	}
	if f.probes.Load() > 0 {
		t.Error("probes were sent to an interface that is not named")
	}
	f.plug(&fakeCamera{host: host(31), uuid: "d", slow: 100 * time.Millisecond})
	d.await(2, 10*time.Second)
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

// TestRealSilentDevices has devices that accept connections and do not answer, and a camera
// whose web server comes up a second after its Hello.
func TestRealSilentDevices(t *testing.T) {
	inNamespace(t)
	f := newFakeNetwork(t)
	d := discover(t, "{discoveryTimeoutSeconds: 1}", nil)
	d.await(0, 10*time.Second)
	for n := range 100 {
		f.plug(&fakeCamera{host: host(100 + n), uuid: fmt.Sprint("silent-", n), slow: time.Minute})
	}
	began := time.Now()
	f.plug(&fakeCamera{host: host(40), uuid: "new", up: began.Add(time.Second)})
	d.await(1, 4*time.Second) // with a reserve for slow machines; TestHelloAmongSilentDevices is exact
	t.Logf("measured: Hello to list %v, with a web server that comes up after 1 s", time.Since(began))
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
	f.plug(&fakeCamera{host: host(35), uuid: "c"})
	discover(t, quick, nil).await(1, 10*time.Second)
	f.say("Hello", &fakeCamera{host: host(35), uuid: "for-the-other"}, netip.AddrPortFrom(host(36), port))
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

// TestRealLoss loses one packet of three in each direction. With a probe per second it
// sees as many probes as ten minutes have by default.
func TestRealLoss(t *testing.T) {
	inNamespace(t)
	f := newFakeNetwork(t)
	f.mu.Lock()
	f.loss = oneInThree(7)
	f.mu.Unlock()
	for n := range 10 {
		f.plug(&fakeCamera{host: host(40 + n), uuid: fmt.Sprint("loss-", n)})
	}
	d := discover(t, "{discoveryTimeoutSeconds: 1, intervalSeconds: 1}", nil)
	d.await(10, 15*time.Second)
	deadline := time.After(15 * time.Second)
	for {
		select {
		case list := <-d.lists:
			t.Errorf("a list of %d devices", len(list))
		case <-deadline:
			t.Logf("measured: %d probes arrived", f.probes.Load())
			return
		}
	}
}

// camerasVariable is the number of cameras of TestRealManyCameras, up to maxCameras.
const camerasVariable = "AKRI_ONVIF_CAMERAS"

// TestRealManyCameras finds very many cameras that answer within half a second.
func TestRealManyCameras(t *testing.T) {
	inNamespace(t)
	count := 500
	if text := os.Getenv(camerasVariable); text != "" {
		var err error
		if count, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	f := newFakeNetwork(t)
	f.mu.Lock()
	for n := range count {
		c := &fakeCamera{host: host(256 + n), uuid: fmt.Sprint("many-", n)}
		f.cameras[c.host] = c
	}
	f.mu.Unlock()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	d := discover(t, "{discoveryTimeoutSeconds: 3, intervalSeconds: 5}", nil)
	devices := d.await(count, 150*time.Second)
	took := time.Since(began)
	runtime.GC()
	runtime.ReadMemStats(&after)
	t.Logf("measured: %d cameras in %v, with %d MiB", count, took, (after.HeapAlloc-before.HeapAlloc)>>20)
	if !slices.IsSortedFunc(devices, func(a, b discovery.Device) int { return strings.Compare(a.ID, b.ID) }) {
		t.Error("the list is not sorted")
	}
}
