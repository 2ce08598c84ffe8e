package browse

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/ipv4"

	"akri.sh/akri/discovery/mdns/browse/wire"
	"akri.sh/akri/internal/fulltest"
)

const (
	// namespaceVariable is set in the process that has a network namespace of its own.
	namespaceVariable = "AKRI_BROWSE_NAMESPACE"
	requiredVariable  = "AKRI_TEST_REQUIRED"
	// patience bounds the wait for a condition.
	patience = 60 * time.Second
)

// TestNetwork runs the tests of inNamespace in a network namespace with interfaces of its
// own.
func TestNetwork(t *testing.T) {
	fulltest.Only(t)
	if os.Geteuid() != 0 {
		text := "network namespaces need root"
		if os.Getenv(requiredVariable) == "1" {
			t.Fatal(text)
		}
		t.Skip(text)
	}
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestInNamespace$", "-test.v")
	command.Env = append(os.Environ(), namespaceVariable+"=1")
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	output, err := command.CombinedOutput()
	t.Logf("%s", output)
	if err != nil {
		t.Fatal(err)
	}
}

func TestInNamespace(t *testing.T) {
	if os.Getenv(namespaceVariable) == "" {
		t.Skip("TestNetwork runs it")
	}
	ip(t, "link set lo up")
	addInterface(t, "mdns0", "192.0.2.1/24")
	addInterface(t, "mdns1", "198.51.100.1/24", "2001:db8::1/64")
	t.Run("IPv6 only", testIPv6)
	t.Run("other programs", testOtherPrograms)
	t.Run("foreign packets", testForeignPackets)
	t.Run("interfaces come and go", testInterfaces)
}

func ip(t *testing.T, arguments string) {
	t.Helper()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), "ip", strings.Fields(arguments)...)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s", arguments, err, output)
	}
}

// addInterface adds an interface with these addresses. Its other end has none, so that the
// browser leaves it alone.
func addInterface(t *testing.T, name string, addresses ...string) {
	t.Helper()
	ip(t, "link add "+name+" type veth peer name "+name+"x")
	for inter, disabled := range map[string]string{name: "0", name + "x": "1"} {
		if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+inter+"/disable_ipv6", []byte(disabled), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ip(t, "link set "+name+"x up")
	for _, address := range addresses {
		ip(t, "address add "+address+" dev "+name)
	}
	ip(t, "link set "+name+" up")
	awaitInterface(t, name, func(Interface) bool { return true }) // the kernel takes up to a second
}

// responder answers for a simulated device on one interface.
type responder struct {
	t      *testing.T
	socket *socket
	mu     sync.Mutex
	device atomic.Pointer[simulatedDevice]
}

func respond(t *testing.T, name string, isIPv6 bool, d *simulatedDevice) *responder {
	t.Helper()
	i, err := net.InterfaceByName(name)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := openSocket(socketID{i.Index, isIPv6})
	if err != nil {
		t.Fatal(err)
	}
	r := &responder{t: t, socket: opened}
	r.device.Store(d)
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.run()
	}()
	t.Cleanup(func() {
		opened.conn.Close()
		<-done
	})
	return r
}

func (r *responder) run() {
	buffer := make([]byte, wire.MaxPacketBytes)
	for {
		count, _, err := r.socket.conn.ReadFromUDPAddrPort(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || wire.IsResponse(buffer[:count]) {
			continue
		}
		asked, err := parseQuery(buffer[:count])
		if err != nil {
			r.t.Error(err)
			return
		}
		var answers []wire.Record
		for _, record := range r.device.Load().records {
			if asked.wanted[setKey{record.Name.Key(), record.Type}] {
				answers = append(answers, record)
			}
		}
		r.send(answers)
	}
}

func (r *responder) send(records []wire.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for some := range slices.Chunk(records, recordsPerPacket) {
		if err := r.socket.send(pack(r.t, some...)); err != nil && !errors.Is(err, net.ErrClosed) {
			r.t.Error(err)
		}
	}
}

// browsing collects the lists of one query.
type browsing struct {
	t     *testing.T
	lists chan []Service
	last  []Service
	stop  func()
}

func browseIn(t *testing.T, browser *Browser, query Query) *browsing {
	t.Helper()
	b := &browsing{t: t, lists: make(chan []Service, 100)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- browser.Browse(ctx, query, func(services []Service) error {
			b.lists <- services
			return nil
		})
	}()
	b.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("ended by %v", err)
		}
	})
	t.Cleanup(b.stop)
	return b
}

// await waits for a list.
func (b *browsing) await(want string) {
	b.t.Helper()
	b.until(want, func(services []Service) bool { return describe(services) == want })
}

func (b *browsing) until(what string, ok func([]Service) bool) {
	b.t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case b.last = <-b.lists:
			if ok(b.last) {
				return
			}
		case <-deadline:
			b.t.Fatalf("want\n%s\nthe last list is\n%s", what, describe(b.last))
		}
	}
}

func webDevice(t *testing.T, name, address string) *simulatedDevice {
	return newSimulation(t).service(0, name, "_http._tcp", address)
}

func testIPv6(t *testing.T) {
	addInterface(t, "mdns6")
	t.Cleanup(func() { ip(t, "link delete mdns6") })
	b := browseIn(t, New(Options{}), Query{Types: []string{"_http._tcp"}, Interfaces: func(i Interface) bool { return i.Name == "mdns6" }})
	b.await("")
	// The address is tentative at first, and cannot be used.
	d := webDevice(t, "Six", "192.0.2.7")
	d.records[4].Type, d.records[4].Address = wire.AAAA, netip.MustParseAddr("fe80::7")
	awaitInterface(t, "mdns6", func(i Interface) bool { return i.speaks(true) })
	respond(t, "mdns6", true, d).send(d.records)
	b.await("Six._http._tcp.local six.local:80 [fe80::7%mdns6]")
}

// awaitInterface waits until an interface can be used and fulfils a condition.
func awaitInterface(t *testing.T, name string, is func(Interface) bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		interfaces, err := listInterfaces()
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range interfaces {
			if i.Name == name && is(i) {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatal(name, " cannot be used")
		}
	}
}

// listenAtPort opens a socket at the port of mDNS as other programs do.
func listenAtPort(t *testing.T, address string) net.PacketConn {
	t.Helper()
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var failed error
		err := raw.Control(func(fd uintptr) {
			failed = errors.Join(syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1),
				syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, 15 /* SO_REUSEPORT */, 1))
		})
		return errors.Join(err, failed)
	}}
	conn, err := config.ListenPacket(t.Context(), "udp4", address+":5353")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// testOtherPrograms: another program at the port still receives its unicast packets.
func testOtherPrograms(t *testing.T) {
	other := listenAtPort(t, "0.0.0.0")
	b := browseIn(t, New(Options{}), Query{Types: []string{"_http._tcp"}})
	b.await("")
	const packets = 50
	for i := range packets { // each from another port, as the kernel distributes packets by port
		sender, err := net.Dial("udp4", "127.0.0.1:5353")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprint(sender, i); err != nil {
			t.Fatal(err)
		}
		sender.Close()
	}
	buffer := make([]byte, 2000)
	for got := 0; got < packets; {
		if err := other.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		count, from, err := other.ReadFrom(buffer)
		if err != nil {
			t.Fatalf("after %d packets: %v", got, err)
		}
		if count < 3 && strings.HasPrefix(from.String(), "127.") {
			got++
		}
	}
}

// testForeignPackets: responses from another port or network are ignored, and the end of
// one that breaks off.
func testForeignPackets(t *testing.T) {
	inter, err := net.InterfaceByName("mdns0")
	if err != nil {
		t.Fatal(err)
	}
	otherPort, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer otherPort.Close()
	packet := pack(t, webDevice(t, "Foreign", "192.0.2.7").records...)
	for _, tc := range []struct {
		reason string
		sender net.PacketConn
		packet []byte
	}{
		{FailedForeign, otherPort, packet},
		{FailedForeign, listenAtPort(t, "198.51.100.1"), packet},                // the address of mdns1
		{FailedMalformed, listenAtPort(t, "192.0.2.1"), packet[:len(packet)-1]}, // the last record is the address
	} {
		if err := ipv4.NewPacketConn(tc.sender).SetMulticastInterface(inter); err != nil {
			t.Fatal(err)
		}
		var failed atomic.Int64
		b := browseIn(t, New(Options{Failed: func(reason string) {
			if reason == tc.reason {
				failed.Add(1)
			}
		}}), Query{Types: []string{"_http._tcp"}})
		b.await("")
		for deadline := time.Now().Add(patience); failed.Load() == 0; time.Sleep(20 * time.Millisecond) {
			if _, err := tc.sender.WriteTo(tc.packet, net.UDPAddrFromAddrPort(netip.AddrPortFrom(groupIPv4, port))); err != nil {
				t.Fatal(err)
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s from %v is not counted", tc.reason, tc.sender.LocalAddr())
			}
		}
		inside := respond(t, "mdns0", false, webDevice(t, "Inside", "192.0.2.8"))
		inside.send(inside.device.Load().records)
		b.await("Inside._http._tcp.local inside.local:80 [192.0.2.8]") // and nothing else
		inside.socket.conn.Close()
		b.stop()
	}
}

func testInterfaces(t *testing.T) {
	browser := New(Options{})
	browser.rescanInterval = time.Second
	b := browseIn(t, browser, Query{Types: []string{"_http._tcp"}})
	b.await("")
	addInterface(t, "mdns2", "203.0.113.1/24")
	first := respond(t, "mdns2", false, webDevice(t, "Late", "203.0.113.7"))
	want := "Late._http._tcp.local late.local:80 [203.0.113.7]"
	b.await(want)
	began := time.Now()
	first.socket.conn.Close()
	ip(t, "link delete mdns2")
	b.await("")
	if took := time.Since(began); took < verifyWindow {
		t.Errorf("the service was gone after %v", took)
	}
	addInterface(t, "mdns2", "203.0.113.1/24")
	respond(t, "mdns2", false, webDevice(t, "Late", "203.0.113.7"))
	b.await(want)
}
