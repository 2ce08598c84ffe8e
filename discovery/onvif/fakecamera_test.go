package onvif

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/ipv4"
)

// fakeCamera is a camera at an address of this network namespace, whose web server is a script.
type fakeCamera struct {
	script

	host netip.Addr
	uuid string
}

// newFakeCamera returns a camera that answers each request with the default answer.
func newFakeCamera(host netip.Addr, uuid string) *fakeCamera {
	return &fakeCamera{host: host, uuid: uuid, script: script{answers: map[string]string{
		"GetSystemDateAndTime": hello, "GetDeviceInformation": information,
		"GetEndpointReference": "<GUID>urn:uuid:" + uuid + "</GUID>",
		"GetNetworkInterfaces": fmt.Sprintf("<NetworkInterfaces><Info><HwAddress>02:00:00:00:00:%02x</HwAddress></Info><IPv4><Config>"+
			"<Manual><Address>%s</Address></Manual></Config></IPv4></NetworkInterfaces>", host.As4()[3], host),
	}}}
}

// fakeNetwork has cameras at addresses of this network namespace.
type fakeNetwork struct {
	t      testing.TB
	socket *ipv4.PacketConn

	mu      sync.Mutex
	cameras map[netip.Addr]*fakeCamera
}

func newFakeNetwork(t testing.TB) *fakeNetwork {
	t.Helper()
	config := net.ListenConfig{}
	plain, err := config.ListenPacket(t.Context(), "udp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp4", "0.0.0.0:80")
	if err != nil {
		t.Fatal(err)
	}
	iface, err := net.InterfaceByName("v0")
	if err != nil {
		t.Fatal(err)
	}
	probes, err := listenGroup()
	if err != nil {
		t.Fatal(err)
	}
	if err := probes.JoinGroup(iface, groupAddress); err != nil {
		t.Fatal(err)
	}
	f := &fakeNetwork{t: t, socket: ipv4.NewPacketConn(plain), cameras: map[netip.Addr]*fakeCamera{}}
	if err := f.socket.SetMulticastInterface(iface); err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: f}
	var background sync.WaitGroup
	background.Go(func() { _ = server.Serve(listener) })
	background.Go(func() { f.answerProbes(probes) })
	t.Cleanup(func() {
		server.Close()
		probes.Close()
		plain.Close()
		background.Wait()
	})
	return f
}

// plug adds a camera, which sends Hello.
func (f *fakeNetwork) plug(c *fakeCamera) *fakeCamera {
	f.mu.Lock()
	f.cameras[c.host] = c
	f.mu.Unlock()
	f.say("Hello", c, netip.AddrPortFrom(group, port))
	return c
}

// unplug removes a camera, which sends Bye if it is polite.
func (f *fakeNetwork) unplug(c *fakeCamera, polite bool) {
	f.mu.Lock()
	delete(f.cameras, c.host)
	f.mu.Unlock()
	if polite {
		f.say("Bye", c, netip.AddrPortFrom(group, port))
	}
}

func (f *fakeNetwork) say(element string, c *fakeCamera, to netip.AddrPort) {
	body := fmt.Sprintf(`<d:%[1]s><a:EndpointReference><a:Address>urn:uuid:%[2]s</a:Address></a:EndpointReference>`+
		`<d:Types>dn:NetworkVideoTransmitter</d:Types><d:Scopes>onvif://www.onvif.org/name/fake</d:Scopes>`+
		`<d:XAddrs>http://%[3]s/onvif/device_service</d:XAddrs></d:%[1]s>`, element, c.uuid, c.host)
	if element == "ProbeMatch" {
		body = "<d:ProbeMatches>" + body + "</d:ProbeMatches>"
	}
	text := `<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope" xmlns:a="http://schemas.xmlsoap.org/ws/2004/08/addressing"` +
		` xmlns:d="http://schemas.xmlsoap.org/ws/2005/04/discovery" xmlns:dn="http://www.onvif.org/ver10/network/wsdl"><s:Body>` +
		body + `</s:Body></s:Envelope>`
	if _, err := f.socket.WriteTo([]byte(text), &ipv4.ControlMessage{Src: c.host.AsSlice()}, net.UDPAddrFromAddrPort(to)); err != nil &&
		!errors.Is(err, net.ErrClosed) {
		f.t.Error(err)
	}
}

// messageID matches the id of a message.
var messageID = regexp.MustCompile(`<a:MessageID>(.*)</a:MessageID>`)

// answerProbes answers those for NetworkVideoTransmitter, for each camera twice, but no copy
// of a message that was answered.
func (f *fakeNetwork) answerProbes(socket *ipv4.PacketConn) {
	buffer := make([]byte, maxMessageBytes)
	answered := map[string]bool{}
	for {
		n, _, source, err := socket.ReadFrom(buffer)
		if err != nil {
			return
		}
		id := messageID.FindString(string(buffer[:n]))
		if !strings.Contains(string(buffer[:n]), "NetworkVideoTransmitter</d:Types></d:Probe>") || answered[id] {
			continue
		}
		answered[id] = true
		f.mu.Lock()
		for _, c := range f.cameras {
			for range 2 {
				f.say("ProbeMatch", c, source.(*net.UDPAddr).AddrPort())
			}
		}
		f.mu.Unlock()
	}
}

// ServeHTTP implements [http.Handler]. The camera is the one at the local address.
func (f *fakeNetwork) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	local := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr).AddrPort().Addr().Unmap()
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.cameras[local]
	if c == nil { // as if nobody were there
		panic(http.ErrAbortHandler)
	}
	c.ServeHTTP(w, r)
}
