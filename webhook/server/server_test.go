package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"

	"akri.sh/akri/webhook/certs"
)

// servedPort is a served port, with a handler that reads the body.
type servedPort struct {
	*testing.T
	address string
	client  *http.Client
}

// path is where the port is served.
const path = certs.Path + "/secret"

// servePort serves a port of its own until the test ends.
func servePort(t *testing.T, clientCA string) *servedPort {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := tlsConfig(clientCA)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	config.Certificates = []tls.Certificate{pair}
	s := &Server{served: func(served string) bool { return served == path }, open: newConnections()}
	web := httptest.NewUnstartedServer(nil)
	web.Config = s.httpServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if read, err := io.Copy(io.Discard, r.Body); err == nil {
			fmt.Fprintf(rw, "read %d", read)
		}
	}))
	web.Listener = tls.NewListener(web.Listener, config)
	go func() { _ = web.Config.Serve(web.Listener) }()
	t.Cleanup(func() { _ = web.Config.Close() })
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certificate)
	p := &servedPort{T: t, address: web.Listener.Addr().String(), client: &http.Client{
		Timeout:   30 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}},
	}}
	t.Cleanup(p.client.CloseIdleConnections)
	return p
}

// send sends a request and returns the status and the body of the response.
func (p *servedPort) send(method, path string, header http.Header, body io.Reader) (int, string) {
	p.Helper()
	httpRequest, err := http.NewRequestWithContext(p.Context(), method, "https://"+p.address+path, body)
	if err != nil {
		p.Fatal(err)
	}
	httpRequest.Header = header
	response, err := p.client.Do(httpRequest)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(text)
}

// endless is a body that never ends. It counts what is read of it.
type endless struct{ read atomic.Int64 }

func (e *endless) Read(p []byte) (int, error) {
	e.read.Add(int64(len(p)))
	return len(p), nil
}

// Requests to other paths than the registered one are not read.
func TestOtherRequests(t *testing.T) {
	p := servePort(t, "")
	for name, tc := range map[string]struct {
		method, path string
		header       http.Header
		status       int
	}{
		"a review":               {http.MethodPost, path, nil, http.StatusOK},
		"the path without a key": {http.MethodPost, certs.Path, nil, http.StatusNotFound},
		"a prefix of the path":   {http.MethodPost, path[:len(path)-1], nil, http.StatusNotFound},
		"a path below it":        {http.MethodPost, path + "/", nil, http.StatusNotFound},
		"the root":               {http.MethodPost, "/", nil, http.StatusNotFound},
		"another method":         {http.MethodPut, path, nil, http.StatusNotFound},
		"large header": {
			http.MethodPost, path, http.Header{"X": {strings.Repeat("x", 64<<10)}}, http.StatusRequestHeaderFieldsTooLarge,
		},
	} {
		t.Run(name, func(t *testing.T) {
			status, text := p.send(tc.method, tc.path, tc.header, strings.NewReader("body"))
			if status != tc.status || (text == "read 4") != (status == http.StatusOK) {
				t.Errorf("the response is %d %s, want %d", status, text, tc.status)
			}
		})
	}
	const buffered = 12 << 20 // by the sockets of both sides
	body := &endless{}
	if status, text := p.send(http.MethodPost, "/", nil, body); body.read.Load() > buffered {
		t.Errorf("%d bytes were sent, and the response is %d %s", body.read.Load(), status, text)
	}
}

// A body that does not arrive, and headers that do not, are given up.
func TestSlowClients(t *testing.T) {
	p := servePort(t, "")
	config := p.client.Transport.(*http.Transport).TLSClientConfig
	for name, text := range map[string]string{
		"a body": "POST " + certs.Path + "/secret HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{",
		"header": "POST / HTTP/1.1\r\nHost: x\r\nX-Slow: ",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			connection, err := tls.Dial("tcp", p.address, config)
			if err != nil {
				t.Fatal(err)
			}
			defer connection.Close()
			if _, err := io.WriteString(connection, text); err != nil {
				t.Fatal(err)
			}
			_ = connection.SetReadDeadline(time.Now().Add(20 * time.Second))
			answer, err := io.ReadAll(connection)
			if err != nil {
				t.Errorf("the connection is still open: %v", err)
			}
			if strings.Contains(string(answer), "read") {
				t.Errorf("the response is %s", answer)
			}
		})
	}
}

// Connections of others, in any number, neither take memory nor keep the API server out.
func TestManyConnections(t *testing.T) {
	p := servePort(t, "")
	if status, text := p.send(http.MethodPost, path, nil, strings.NewReader("body")); status != http.StatusOK {
		t.Fatalf("the response is %d %s", status, text)
	}
	strangers := make([]net.Conn, 0, 10_000)
	defer func() {
		for _, stranger := range strangers {
			stranger.Close()
		}
	}()
	for range cap(strangers) {
		stranger, err := net.Dial("tcp", p.address)
		if err != nil {
			break // no more descriptors: those of the server are in this process, too
		}
		strangers = append(strangers, stranger)
	}
	if len(strangers) < 2*maxConnections {
		t.Skipf("only %d connections can be opened", len(strangers))
	}
	for _, connection := range []string{"proven", "new"} {
		if status, text := p.send(http.MethodPost, path, nil, strings.NewReader("body")); status != http.StatusOK {
			t.Errorf("on a %s connection, the response is %d %s", connection, status, text)
		}
		p.client.CloseIdleConnections()
	}
}

// Beyond the bound, the oldest connection without a request to the right path is closed.
func TestOldestConnection(t *testing.T) {
	c := newConnections()
	all := make([]net.Conn, maxConnections+3)
	for i := range all {
		all[i], _ = net.Pipe()
		c.prove(withConnection(t.Context(), all[0]))
		excess := c.add(all[i])
		if want := max(0, i-maxConnections+1); want == 0 && excess != nil || want > 0 && excess != all[want] {
			t.Fatalf("connection %d: wrong excess, want that of number %d", i, want)
		}
	}
	for _, connection := range all {
		c.changed(connection, http.StateClosed)
	}
	if len(c.open)+len(c.unproven) > 0 {
		t.Errorf("%d connections are open and %d unproven after all were closed", len(c.open), len(c.unproven))
	}
}

// With a CA for client certificates, only the API server can connect.
func TestClientCertificate(t *testing.T) {
	certificate, pair := clientCertificate(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	p := servePort(t, file)
	if status, text := p.send(http.MethodPost, path, nil, strings.NewReader("body")); status != 0 {
		t.Errorf("without a certificate, the response is %d %s", status, text)
	}
	p.client.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{pair}
	if status, text := p.send(http.MethodPost, path, nil, strings.NewReader("body")); status != http.StatusOK {
		t.Errorf("with its certificate, the response is %d %s", status, text)
	}
	for name, content := range map[string]string{"missing": "", "empty.crt": "no certificate"} {
		file := filepath.Join(t.TempDir(), name)
		if content != "" {
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := tlsConfig(file); err == nil || !strings.Contains(err.Error(), "CA of the API server's client certificate") {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

// clientCertificate returns a client certificate, which is its own CA.
func clientCertificate(t *testing.T) ([]byte, tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

func TestAddress(t *testing.T) {
	for _, address := range []string{"", "9443", ":x", ":0", ":70000"} {
		_, err := Add(t.Context(), nil, Options{Address: address}, nil)
		if err == nil || !strings.Contains(err.Error(), "address of the webhook") {
			t.Errorf("address %q: the error is %v", address, err)
		}
	}
}
