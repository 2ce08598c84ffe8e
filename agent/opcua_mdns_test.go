package agent_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/gopcua/opcua/server"
	"github.com/gopcua/opcua/ua"
	"github.com/miekg/dns"
	"golang.org/x/net/ipv4"

	"akri.sh/akri/discovery/embeddable"
	"akri.sh/akri/internal/fulltest"
)

// namespaceVariable is set in the process that has a network namespace of its own.
const namespaceVariable = "AKRI_AGENT_NAMESPACE"

// plant is the interface of the plant's network.
const plant, plantAddress = "plant0", "192.0.2.1"

// TestOPCUAByMDNS runs a test in a network namespace: servers announce themselves by mDNS,
// which does not use the loopback device.
func TestOPCUAByMDNS(t *testing.T) {
	fulltest.Only(t)
	if os.Geteuid() != 0 {
		if reason := "network namespaces need root"; os.Getenv("AKRI_TEST_REQUIRED") == "1" {
			t.Fatal(reason)
		} else {
			t.Skip(reason)
		}
	}
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRestartsOfOPCUAInNamespace$", "-test.v")
	command.Env = append(os.Environ(), namespaceVariable+"=1")
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	output, err := command.CombinedOutput()
	t.Logf("%s", output)
	if err != nil {
		t.Fatal(err)
	}
}

// TestRestartsOfOPCUAInNamespace checks that no Instance of a server found by mDNS changes
// when the handler restarts.
func TestRestartsOfOPCUAInNamespace(t *testing.T) {
	if os.Getenv(namespaceVariable) == "" {
		t.Skip("TestOPCUAByMDNS runs it")
	}
	for _, arguments := range []string{
		"link set lo up", "link add " + plant + " type veth peer name other0", "address add " + plantAddress + "/24 dev " + plant,
		"link set other0 up", "link set " + plant + " up", "route add default dev " + plant, // which the API server needs
	} {
		if output, err := exec.CommandContext(t.Context(), "ip", strings.Fields(arguments)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", arguments, err, output)
		}
	}
	w := newWorld(t)
	a := w.node("a")
	a.startAgent()
	stopHandler := a.startOutside(embeddable.OPCUA(nil))
	network := respond(t)
	w.configure("plc", "", func(spec map[string]any) {
		spec["discoveryHandler"] = map[string]any{"name": "opcua", "discoveryDetails": "{opcuaDiscoveryMethod: {mdns: {}}, intervalSeconds: 1}"}
	})
	var ids []string
	before := map[string]string{}
	for i := range 3 {
		port := 4840 + i
		startPLC(t, port)
		network.announce(port)
		ids = append(ids, fmt.Sprintf("opc.tcp://%s:%d", plantAddress, port))
		// The next server shows that the agent has the first list of the handler that has
		// restarted, or a later one.
		found := versions(w.awaitDevices(ids...))
		for id, version := range before {
			if found[id] != version {
				t.Errorf("after a restart of the handler, %s is %s, and was %s", id, found[id], version)
			}
		}
		before = found
		stopHandler()
		stopHandler = a.startOutside(embeddable.OPCUA(nil))
	}
	stopHandler()
}

// startPLC starts a server in the plant.
func startPLC(t *testing.T, port int) {
	t.Helper()
	s := server.New(server.EndPoint(plantAddress, port), server.ServerName(fmt.Sprint("Oven ", port)),
		server.EnableSecurity("None", ua.MessageSecurityModeNone), server.EnableAuthMode(ua.UserTokenTypeAnonymous))
	if err := s.Start(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
}

// responder announces servers by mDNS.
type responder struct {
	t    *testing.T
	conn *net.UDPConn

	mu    sync.Mutex
	ports []int
}

func respond(t *testing.T) *responder {
	t.Helper()
	inter, err := net.InterfaceByName(plant)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.ListenMulticastUDP("udp4", inter, group)
	if err != nil {
		t.Fatal(err)
	}
	packets := ipv4.NewPacketConn(conn)
	if err := errors.Join(packets.SetMulticastInterface(inter), packets.SetMulticastLoopback(true)); err != nil {
		t.Fatal(err)
	}
	r := &responder{t: t, conn: conn}
	var running sync.WaitGroup
	running.Go(func() {
		for buffer := make([]byte, 9000); ; {
			count, err := conn.Read(buffer)
			if err != nil {
				return
			}
			var question dns.Msg
			if question.Unpack(buffer[:count]) == nil && !question.Response {
				r.answer()
			}
		}
	})
	t.Cleanup(func() { conn.Close(); running.Wait() })
	return r
}

var group = net.UDPAddrFromAddrPort(netip.MustParseAddrPort("224.0.0.251:5353"))

func (r *responder) announce(port int) {
	r.mu.Lock()
	r.ports = append(r.ports, port)
	r.mu.Unlock()
	r.answer()
}

// answer sends all that is known, as long as the network has the responder.
func (r *responder) answer() {
	r.mu.Lock()
	defer r.mu.Unlock()
	message := dns.Msg{MsgHdr: dns.MsgHdr{Response: true, Authoritative: true}}
	for _, port := range r.ports {
		for _, format := range []string{
			"_opcua-tcp._tcp.local. 120 IN PTR oven-%d._opcua-tcp._tcp.local.",
			"oven-%[1]d._opcua-tcp._tcp.local. 120 IN SRV 0 0 %[1]d plant.local.",
			"oven-%d._opcua-tcp._tcp.local. 120 IN TXT \"caps=DA\"", "plant.local. 120 IN A " + plantAddress + " ; %d",
		} {
			record, err := dns.NewRR(fmt.Sprintf(format, port))
			if err != nil {
				r.t.Error(err)
				return
			}
			message.Answer = append(message.Answer, record)
		}
	}
	packet, err := message.Pack()
	if err != nil {
		r.t.Error(err)
		return
	}
	_, _ = r.conn.WriteToUDP(packet, group) // the browser asks again
}
