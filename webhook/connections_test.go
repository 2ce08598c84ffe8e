package webhook

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"

	"akri.sh/akri/internal/apitest"
	"akri.sh/akri/webhook/certs"
)

// servedPort is a served port of the webhook, with a reviewer that admits everything.
type servedPort struct {
	*testing.T
	address string
	client  *http.Client
}

// servePort serves the webhook on a port of its own until the test ends.
func servePort(t *testing.T, options ...func(*httpsServer)) *servedPort {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := tlsConfig("")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	s := &httpsServer{
		address: freeAddress(t), config: config,
		served:  func(path string) bool { return path == certs.Path+"/secret" },
		handler: instrumented(handlerFor(reviewFunc(func(context.Context, admissionRequest) []Finding { return nil }))),
	}
	for _, option := range options {
		option(s)
	}
	s.config.Certificates = []tls.Certificate{pair}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the server returned: %v", err)
		}
	})
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certificate)
	p := &servedPort{T: t, address: s.address, client: &http.Client{
		Timeout:   30 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}},
	}}
	t.Cleanup(p.client.CloseIdleConnections)
	apitest.Eventually(t, "the port is open", func() string {
		connection, err := net.Dial("tcp", p.address)
		if err != nil {
			return err.Error()
		}
		connection.Close()
		return ""
	})
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

var asJSON = http.Header{"Content-Type": {"application/json"}}

// endless is a body that never ends. It counts what is read of it.
type endless struct{ read atomic.Int64 }

func (e *endless) Read(p []byte) (int, error) {
	e.read.Add(int64(len(p)))
	return len(p), nil
}

// Requests that the API server does not send cost little and are never admitted.
func TestStrangeRequests(t *testing.T) {
	p := servePort(t)
	const path = certs.Path + "/secret"
	valid := question("{}")
	for name, tc := range map[string]struct {
		method, path string
		header       http.Header
		body         string
		status       int
		says         string
	}{
		"a review":               {http.MethodPost, path, asJSON, valid, http.StatusOK, `"allowed":true`},
		"the path without a key": {http.MethodPost, certs.Path, asJSON, valid, http.StatusNotFound, ""},
		"a prefix of the path":   {http.MethodPost, path[:len(path)-1], asJSON, valid, http.StatusNotFound, ""},
		"a path below it":        {http.MethodPost, path + "/", asJSON, valid, http.StatusNotFound, ""},
		"the root":               {http.MethodPost, "/", asJSON, valid, http.StatusNotFound, ""},
		"another method":         {http.MethodGet, path, asJSON, "", http.StatusNotFound, ""},
		"no body":                {http.MethodPost, path, asJSON, "", 200, "no AdmissionReview"},
		"another version": {http.MethodPost, path, asJSON, strings.Replace(valid, "admission.k8s.io/v1", "admission.k8s.io/v9", 1), 200,
			"no AdmissionReview of admission.k8s.io/v1"},
		"another kind": {http.MethodPost, path, asJSON, strings.Replace(valid, `"AdmissionReview"`, `"Pod"`, 1), 200, "no AdmissionReview"},
		"no request": {http.MethodPost, path, asJSON, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, 200,
			"no AdmissionReview"},
		"deep JSON": {http.MethodPost, path, asJSON, strings.Repeat("[", 1<<20), 200, `"allowed":false`},
		"large header": {http.MethodPost, path, http.Header{"X": {strings.Repeat("x", 64<<10)}}, valid,
			http.StatusRequestHeaderFieldsTooLarge, ""},
	} {
		t.Run(name, func(t *testing.T) {
			status, text := p.send(tc.method, tc.path, tc.header, strings.NewReader(tc.body))
			if status != tc.status || !strings.Contains(text, tc.says) {
				t.Errorf("the response is %d %s, want %d and %q", status, text, tc.status, tc.says)
			}
			if strings.Contains(text, `"allowed":true`) != (tc.says == `"allowed":true`) {
				t.Errorf("the response is %s", text)
			}
		})
	}
}

// A body is read as far as it may be, and not at all on another path.
func TestEndlessBody(t *testing.T) {
	p := servePort(t)
	const buffered = 12 << 20 // by the sockets of both sides
	for path, limit := range map[string]int64{"/": buffered, certs.Path + "/secret": maxBody + buffered} {
		body := &endless{}
		status, text := p.send(http.MethodPost, path, asJSON, body)
		if body.read.Load() > limit || strings.Contains(text, `"allowed":true`) {
			t.Errorf("%s: %d bytes were sent, and the response is %d %s", path, body.read.Load(), status, text)
		}
	}
}

// A body that does not arrive, and headers that do not, are given up.
func TestSlowClients(t *testing.T) {
	p := servePort(t)
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
			if strings.Contains(string(answer), `"allowed":true`) {
				t.Errorf("the response is %s", answer)
			}
		})
	}
}

// Connections of others, in any number, neither take memory nor keep the API server out.
func TestManyConnections(t *testing.T) {
	p := servePort(t)
	const path = certs.Path + "/secret"
	if status, text := p.send(http.MethodPost, path, asJSON, strings.NewReader(question("{}"))); status != http.StatusOK {
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
		if status, text := p.send(http.MethodPost, path, asJSON, strings.NewReader(question("{}"))); status != http.StatusOK {
			t.Errorf("on a %s connection, the response is %d %s", connection, status, text)
		}
		p.client.CloseIdleConnections()
	}
	// The oldest are closed.
	_ = strangers[0].SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := bufio.NewReader(strangers[0]).ReadByte(); err == nil || os.IsTimeout(err) {
		t.Errorf("the oldest of %d connections is still open: %v", len(strangers), err)
	}
}

// With a CA for client certificates, only the API server can connect.
func TestClientCertificate(t *testing.T) {
	certificate, pair := clientCertificate(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	p := servePort(t, func(s *httpsServer) {
		if s.config, err = tlsConfig(file); err != nil {
			t.Fatal(err)
		}
	})
	const path = certs.Path + "/secret"
	if status, text := p.send(http.MethodPost, path, asJSON, strings.NewReader(question("{}"))); status != 0 {
		t.Errorf("without a certificate, the response is %d %s", status, text)
	}
	p.client.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{pair}
	if status, text := p.send(http.MethodPost, path, asJSON, strings.NewReader(question("{}"))); status != http.StatusOK {
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
