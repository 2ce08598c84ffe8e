package onvif

import (
	"crypto/sha1"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/ipv4"

	"akri.sh/akri/internal/backoff"
)

// fakeCamera is a camera with faults. Set its fields before it is plugged in.
type fakeCamera struct {
	host netip.Addr
	uuid string
	// xaddr is what it announces; its own device service if empty.
	xaddr string
	// username and password are demanded if they are set: by UsernameToken, or by HTTP
	// digest authentication.
	username, password string
	httpDigest         bool
	// clock is how far its clock is ahead.
	clock time.Duration
	// slow is how long it thinks about each request.
	slow time.Duration
	// up is when its web server begins to answer.
	up time.Time
	// stream is its stream URI, media the address of its media service.
	stream, media string
	// requests counts the HTTP requests.
	requests atomic.Int64
	// refused counts the requests with wrong credentials.
	refused atomic.Int64
}

// fakeNetwork has cameras at addresses of this network namespace.
type fakeNetwork struct {
	t      testing.TB
	socket *ipv4.PacketConn
	probes atomic.Int64

	mu      sync.Mutex
	loss    func() bool // of a probe or an answer; nil for none
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
	xaddr := c.xaddr
	if xaddr == "" {
		xaddr = "http://" + c.host.String() + "/onvif/device_service"
	}
	body := fmt.Sprintf(`<d:%[1]s><a:EndpointReference><a:Address>urn:uuid:%[2]s</a:Address></a:EndpointReference>`+
		`<d:Types>dn:NetworkVideoTransmitter</d:Types><d:Scopes>onvif://www.onvif.org/name/fake</d:Scopes>`+
		`<d:XAddrs>%[3]s</d:XAddrs><d:MetadataVersion>1</d:MetadataVersion></d:%[1]s>`, element, c.uuid, xaddr)
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
		from := source.(*net.UDPAddr).AddrPort()
		f.mu.Lock()
		loss := f.loss
		f.mu.Unlock()
		isProbe := strings.Contains(string(buffer[:n]), "NetworkVideoTransmitter</d:Types></d:Probe>")
		if !isProbe || loss != nil && loss() {
			continue
		}
		id := messageID.FindString(string(buffer[:n]))
		if answered[id] {
			continue
		}
		answered[id] = true
		f.probes.Add(1)
		f.mu.Lock()
		var all []*fakeCamera
		for _, c := range f.cameras {
			all = append(all, c)
		}
		f.mu.Unlock()
		for i, c := range all {
			for range 2 {
				if loss == nil || !loss() {
					f.say("ProbeMatch", c, from)
				}
			}
			if len(all) > 100 && i%20 == 19 {
				time.Sleep(time.Millisecond) // real cameras spread their answers over half a second
			}
		}
	}
}

// ServeHTTP implements [http.Handler]. The camera is the one at the local address.
func (f *fakeNetwork) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	local := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr).AddrPort().Addr().Unmap()
	f.mu.Lock()
	c := f.cameras[local]
	f.mu.Unlock()
	if c == nil || time.Now().Before(c.up) { // as if nobody were there
		panic(http.ErrAbortHandler)
	}
	c.requests.Add(1)
	body, err := io.ReadAll(r.Body)
	var call requestEnvelope
	parseErr := xml.Unmarshal(body, &call)
	if err != nil || parseErr != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if !backoff.Sleep(r.Context(), c.slow) {
		return
	}
	operation := call.Body.Operation.XMLName.Local
	if operation != "GetSystemDateAndTime" && !c.authorized(w, r, call.Token) {
		return
	}
	fmt.Fprintf(w, `<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope"><s:Body>`+
		`<%[1]sResponse>%[2]s</%[1]sResponse></s:Body></s:Envelope>`, operation, c.answer(operation))
}

// requestEnvelope is a request to a camera.
type requestEnvelope struct {
	Token usernameToken `xml:"Header>Security>UsernameToken"`
	Body  struct {
		Operation struct{ XMLName xml.Name } `xml:",any"`
	}
}

type usernameToken struct{ Username, Password, Nonce, Created string }

// authorized checks the credentials, and refuses the request if they are wrong.
func (c *fakeCamera) authorized(w http.ResponseWriter, r *http.Request, token usernameToken) bool {
	if c.username == "" {
		return true
	}
	if c.httpDigest {
		if strings.Contains(r.Header.Get("Authorization"), `username="`+c.username+`"`) { // package soap tests the digest
			return true
		}
		w.Header().Set("WWW-Authenticate", `Digest realm="camera", nonce="1", qop="auth"`)
		w.WriteHeader(http.StatusUnauthorized)
		return false
	}
	nonce, _ := base64.StdEncoding.DecodeString(token.Nonce)
	created, _ := time.Parse(time.RFC3339, token.Created)
	sum := sha1.Sum([]byte(string(nonce) + token.Created + c.password))
	if token.Username == c.username && token.Password == base64.StdEncoding.EncodeToString(sum[:]) &&
		time.Now().Add(c.clock).Sub(created).Abs() < 5*time.Second {
		return true
	}
	c.refused.Add(1)
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprint(w, `<s:Envelope xmlns:s="x"><s:Body><s:Fault><s:Code><s:Value>s:Sender</s:Value><s:Subcode>`+
		`<s:Value>ter:NotAuthorized</s:Value></s:Subcode></s:Code></s:Fault></s:Body></s:Envelope>`)
	return false
}

// answer returns the content of a response.
func (c *fakeCamera) answer(operation string) string {
	switch operation {
	case "GetSystemDateAndTime":
		now := time.Now().UTC().Add(c.clock)
		return fmt.Sprintf(`<SystemDateAndTime><UTCDateTime><Time><Hour>%d</Hour><Minute>%d</Minute><Second>%d</Second></Time>`+
			`<Date><Year>%d</Year><Month>%d</Month><Day>%d</Day></Date></UTCDateTime></SystemDateAndTime>`,
			now.Hour(), now.Minute(), now.Second(), now.Year(), now.Month(), now.Day())
	case "GetNetworkInterfaces":
		return fmt.Sprintf(`<NetworkInterfaces token="eth0"><Info><HwAddress>02:00:00:00:00:%02x</HwAddress></Info><IPv4><Config>`+
			`<Manual><Address>%s</Address></Manual></Config></IPv4></NetworkInterfaces>`, c.host.As4()[3], c.host)
	case "GetDeviceInformation":
		return "<Manufacturer>Fake</Manufacturer><Model>One\n&lt;1&gt;</Model><FirmwareVersion>1.2</FirmwareVersion>" +
			"<SerialNumber>" + strings.Repeat("7", 2000) + "</SerialNumber><HardwareId>rev2</HardwareId>"
	case "GetCapabilities":
		media := c.media
		if media == "" {
			media = "http://" + c.host.String() + "/onvif/media"
		}
		return "<Capabilities><Media><XAddr>" + media + "</XAddr></Media></Capabilities>"
	case "GetProfiles":
		return `<Profiles token="main&lt;"/><Profiles token="sub"/>`
	case "GetStreamUri":
		return "<MediaUri><Uri>" + c.stream + "</Uri></MediaUri>"
	case "GetSnapshotUri":
		return "<MediaUri><Uri>http://" + c.host.String() + "/snapshot.jpg?id=1</Uri></MediaUri>"
	case "GetEndpointReference":
		return "<GUID>urn:uuid:" + c.uuid + "</GUID>"
	}
	return ""
}

// oneInThree returns a function that is true for one call in three.
func oneInThree(seed uint64) func() bool {
	random := rand.New(rand.NewPCG(seed, 1))
	return func() bool { return random.IntN(3) == 0 }
}
